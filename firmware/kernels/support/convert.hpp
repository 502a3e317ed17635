// Conversions between element types, with the results of ExecuTorch's host runtime where C++ defines none.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace ethosu_sdk::kernels {

// Towards zero. What Integer cannot hold, NaN included, becomes its minimum: x86-64's conversion to 32 and 64
// bits (Intel SDM, CVTTSS2SI). Arm's own saturates.
template <typename Integer, typename Float>
Integer truncate(Float value) {
  static_assert(sizeof(Integer) >= 4 && std::is_signed_v<Integer>);
  constexpr auto minimum = static_cast<Float>(std::numeric_limits<Integer>::min());  // a power of two: exact
  // For int32 from double the values between minimum - 1 and minimum count too, as they truncate to it.
  const bool fits =
      value < -minimum && (value >= minimum || (sizeof(Float) > sizeof(Integer) && value > minimum - 1));
  return fits ? static_cast<Integer>(value) : std::numeric_limits<Integer>::min();
}

// Integers wrap; bool is whether the value differs from 0; small integers take the low bits of int32.
template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return static_cast<To>(truncate<std::conditional_t<sizeof(To) == 8, std::int64_t, std::int32_t>>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace ethosu_sdk::kernels
