// ScalarType → C++ type: calls a generic function object with a Type<T>.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/support/kernel_api.hpp"

namespace ethosu_sdk::kernels {

template <typename T>
struct Type {
  using type = T;
};

template <typename TypeTag>
using type_of = typename TypeTag::type;

// Calls `function`; one that dispatches again says itself whether it found a type.
template <typename T, typename Function>
bool call_with(Function& function) {
  if constexpr (std::is_same_v<decltype(function(Type<T>())), bool>) {
    return function(Type<T>());
  } else {
    function(Type<T>());
    return true;
  }
}

// False: `dtype` is not among the types, and `function` was not called. The same below.
template <typename Function>
bool for_small_integer(ScalarType dtype, Function&& function) {
  switch (dtype) {
    case ScalarType::uint8:
      return call_with<std::uint8_t>(function);
    case ScalarType::int8:
      return call_with<std::int8_t>(function);
    case ScalarType::int16:
      return call_with<std::int16_t>(function);
    case ScalarType::int32:
      return call_with<std::int32_t>(function);
    default:
      return false;
  }
}

template <typename Function>
bool for_float(ScalarType dtype, Function&& function) {
  switch (dtype) {
    case ScalarType::float32:
      return call_with<float>(function);
    case ScalarType::float64:
      return call_with<double>(function);
    default:
      return false;
  }
}

template <typename Function>
bool for_integer(ScalarType dtype, Function&& function) {
  return dtype == ScalarType::int64 ? call_with<std::int64_t>(function) : for_small_integer(dtype, function);
}

template <typename Function>
bool for_real(ScalarType dtype, Function&& function) {
  return for_integer(dtype, function) || for_float(dtype, function);
}

// The types to compute with themselves.
template <typename Function>
bool for_compute_type(ScalarType dtype, Function&& function) {
  return dtype == ScalarType::int64 ? call_with<std::int64_t>(function) : for_float(dtype, function);
}

// Calls `function` with the type that computes `dtype`: float, double, or int64 for integers and bool.
// Returns what it returns.
template <typename Function>
auto with_compute_type(ScalarType dtype, Function&& function) {
  if (dtype == ScalarType::float64) {
    return function(Type<double>());
  }
  return dtype == ScalarType::float32 ? function(Type<float>()) : function(Type<std::int64_t>());
}

// The same function for each type to compute with; nullptr: there is none.
template <template <typename Compute> class Function>
struct ForComputeTypes {
  Function<std::int64_t> integer;
  Function<float> single;
  Function<double> wide;

  template <typename Compute>
  Function<Compute> get() const {
    if constexpr (std::is_same_v<Compute, double>) {
      return wide;
    } else if constexpr (std::is_same_v<Compute, float>) {
      return single;
    } else {
      return integer;
    }
  }
};

}  // namespace ethosu_sdk::kernels
