// Elements of any dtype as one of three types to compute with: int64 for integers and bool, float and double.
//
// Sums, differences and products of small integers, computed in 64 bits and cut to the small type, are those
// of the small type: no type needs code of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/arguments.hpp"

namespace ethosu_sdk::kernels {

template <typename Compute>
using Load = Compute (*)(const void* data, std::size_t index);
template <typename Compute>
using Store = void (*)(void* data, std::size_t index, Compute value);

// For Compute = int64, float and double; nullptr for dtypes that no kernel here computes, and for
// floating-point elements as int64.
template <typename Compute>
Load<Compute> load_of(ScalarType dtype);
template <typename Compute>
Store<Compute> store_of(ScalarType dtype);

bool is_integral(ScalarType dtype);  // bool included
// PyTorch's promotion of two dtypes, of which each is bool, an integer, float32 or float64.
ScalarType promote(ScalarType left, ScalarType right);
// The same of a tensor and a number in the program: only a number of a higher category changes the dtype.
ScalarType promote_with_scalar(ScalarType tensor, const Scalar& scalar);

// The number as Compute.
template <typename Compute>
Compute scalar_as(const Scalar& scalar) {
  return scalar.is_real() ? static_cast<Compute>(scalar.real) : static_cast<Compute>(scalar.integer);
}
template <>
std::int64_t scalar_as<std::int64_t>(const Scalar& scalar);

}  // namespace ethosu_sdk::kernels
