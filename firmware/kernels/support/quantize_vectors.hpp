// Conversions between float and small integers, element by element and in vectors.
//
// The functions for vectors convert elements from the first on and return how many: at least 0, at most
// `count`. Their results have the bits of `quantized` and `dequantized`. helium/ implements them for Cortex-M
// with MVE; those of scalar/ convert nothing.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/support/convert.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {

// The order of operations of ExecuTorch 1.5.1: the sum is a float too.
template <typename Integer>
Integer quantized(float value, float inverse_scale, std::int32_t zero_point, std::int64_t minimum,
                  std::int64_t maximum) {
  const auto wide =
      truncate<std::int64_t>(static_cast<float>(zero_point) + std::nearbyint(inverse_scale * value));
  const auto raised = wide < minimum ? minimum : wide;
  return static_cast<Integer>(raised > maximum ? maximum : raised);
}

template <typename Integer>
float dequantized(Integer value, float scale, std::int32_t zero_point) {
  return static_cast<float>(wrapping_difference(std::int32_t{value}, zero_point)) * scale;
}

// Whether quantize_vectors() takes results `to_step` apart: the offsets of sixteen bytes are bytes too.
template <typename Integer>
bool quantizes_in_steps(std::size_t to_step, Integer minimum, Integer maximum) {
  using Limits = std::numeric_limits<Integer>;
  const bool clamps = minimum != Limits::min() || maximum != Limits::max();
  return to_step == 1 || (sizeof(Integer) == 1 && to_step <= 0xFF / 15 && !clamps);
}

template <typename Integer>
std::size_t quantize_vectors(const float* from, Integer* to, std::size_t to_step, std::size_t count,
                             float inverse_scale, std::int32_t zero_point, Integer minimum, Integer maximum);

template <typename Integer>
std::size_t dequantize_vectors(const Integer* from, float* to, std::size_t count, float scale,
                               std::int32_t zero_point);

}  // namespace ethosu_sdk::kernels
