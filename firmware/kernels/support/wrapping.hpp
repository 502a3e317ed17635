// Arithmetic that wraps where C++ leaves the overflow of signed integers undefined; real numbers as C++ has
// them.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ethosu_sdk::kernels {

// The unsigned integer that computes for a signed one. Smaller ones would be promoted to int.
template <typename Integer>
auto bits_of(Integer value) {
  static_assert(std::is_signed_v<Integer> && sizeof(Integer) >= sizeof(int));
  return static_cast<std::make_unsigned_t<Integer>>(value);
}

template <typename Compute>
Compute wrapping_sum(Compute left, Compute right) {
  if constexpr (std::is_integral_v<Compute>) {
    return static_cast<Compute>(bits_of(left) + bits_of(right));
  } else {
    return left + right;
  }
}
template <typename Compute>
Compute wrapping_difference(Compute left, Compute right) {
  if constexpr (std::is_integral_v<Compute>) {
    return static_cast<Compute>(bits_of(left) - bits_of(right));
  } else {
    return left - right;
  }
}
template <typename Compute>
Compute wrapping_product(Compute left, Compute right) {
  if constexpr (std::is_integral_v<Compute>) {
    return static_cast<Compute>(bits_of(left) * bits_of(right));
  } else {
    return left * right;
  }
}

// Of integers. The least one is its own negative.
inline std::int64_t wrapping_negative(std::int64_t value) {
  return wrapping_difference(std::int64_t{0}, value);
}
inline std::int64_t wrapping_shift(std::int64_t value, std::uint64_t steps) {
  return static_cast<std::int64_t>(bits_of(value) << steps);
}

// Cut off. The divisor is not 0; the least integer by -1 wraps.
inline std::int64_t wrapping_quotient(std::int64_t left, std::int64_t right) {
  return right == -1 ? wrapping_negative(left) : left / right;
}
inline std::int64_t wrapping_remainder(std::int64_t left, std::int64_t right) {
  return right == -1 ? 0 : left % right;
}
// Rounded down.
inline std::int64_t wrapping_floor_quotient(std::int64_t left, std::int64_t right) {
  const std::int64_t quotient = wrapping_quotient(left, right);
  const std::int64_t remainder = wrapping_remainder(left, right);
  return remainder != 0 && (remainder < 0) != (right < 0) ? quotient - 1 : quotient;
}

}  // namespace ethosu_sdk::kernels
