// Fixed-point scaling of int32, as CMSIS-NN's arm_nn_requantize and its reference in ExecuTorch 1.5.1
// (backends/cortex_m/passes/passes_utils.py, requantize_cmsis) compute it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/support/arguments.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {

// value × multiplier / 2^31 × 2^shift
struct Requantization {
  std::int32_t multiplier = 0;
  std::int32_t shift = 0;  // -31 … 31

  // Whether saturation cannot change a product: a left shift could overflow, as could the product of two
  // minima.
  bool is_plain() const { return shift <= 0 && multiplier > std::numeric_limits<std::int32_t>::min(); }
};

// Checks that the shift is in range.
Requantization checked_requantization(Arguments& arguments, std::int64_t multiplier, std::int64_t shift);
// Arguments `index` and `index + 1`.
Requantization read_requantization(Arguments& arguments, std::size_t index);

// An argument that is an int32.
std::int32_t read_int32(Arguments& arguments, std::size_t index);

// The elements of an int32 tensor, which must have `count` of them.
const std::int32_t* read_int32s(Arguments& arguments, const Tensor& tensor, std::size_t count);

// What is added to a result, and the bounds of the sum, which lie in int8.
struct OutputRange {
  std::int32_t offset = 0;
  std::int32_t minimum = -128;
  std::int32_t maximum = 127;
};
OutputRange read_output_range(Arguments& arguments, std::size_t offset, std::size_t minimum,
                              std::size_t maximum);

// The product is rounded half up, the right shift half away from zero.
inline std::int32_t requantize(std::int32_t value, const Requantization& by) {
  const int left = by.shift > 0 ? by.shift : 0;
  const int right = by.shift < 0 ? -by.shift : 0;
  const std::int64_t shifted = wrapping_shift(value, static_cast<std::uint64_t>(left));
  const std::int64_t product = wrapping_product(shifted, std::int64_t{by.multiplier});
  std::int64_t result = wrapping_sum(product, std::int64_t{1} << 30) >> 31;
  if (right > 0) {
    const std::int64_t mask = (std::int64_t{1} << right) - 1;
    const std::int64_t rest = result & mask;
    result >>= right;
    result += rest > (mask >> 1) + (result < 0 ? 1 : 0) ? 1 : 0;
  }
  return static_cast<std::int32_t>(result);
}

inline std::int8_t in_range(std::int32_t value, const OutputRange& range) {
  const std::int32_t sum = wrapping_sum(value, range.offset);
  const std::int32_t raised = sum < range.minimum ? range.minimum : sum;
  return static_cast<std::int8_t>(raised > range.maximum ? range.maximum : raised);
}

}  // namespace ethosu_sdk::kernels
