// Loops over int8 in vectors. helium/ implements them for Cortex-M with MVE, scalar/ one by one. Sums wrap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/requantize.hpp"

namespace ethosu_sdk::kernels {

// sums[k] = starts[k] + Σ values[i] × weights[k × step + i] for `count` values and each of `channels`. The
// starts may be the sums.
void dot_products(const std::int32_t* starts, std::int32_t* sums, const std::int8_t* values,
                  const std::int8_t* weights, std::size_t step, std::size_t count, std::size_t channels);

// Σ values[i]
std::int32_t sum_of(const std::int8_t* values, std::size_t count);

// Rows of a few values each: to[i × to_step + j] = from[i × from_step + j].
struct CopiedRows {
  std::size_t rows;
  std::size_t count;  // of values
  std::size_t from_step;
  std::size_t to_step;
};
void copy_rows(const std::int8_t* from, std::int8_t* to, const CopiedRows& copied);

// The elements of a window for one channel; those of the next channel follow.
struct Taps {
  const std::int8_t* values;
  const std::int8_t* weights;
  std::size_t rows;
  std::size_t columns;
  std::size_t value_row_step;
  std::size_t value_column_step;
  std::size_t weight_row_step;
  std::size_t weight_column_step;
};

// sums[k] += Σ (value + offset) × weight over the window, for each of `channels`. There is room for a
// multiple of eight sums.
void window_products(std::int32_t* sums, const Taps& taps, std::int32_t offset, std::size_t channels);

// The same where all channels have the values of the first.
void shared_window_products(std::int32_t* sums, const Taps& taps, std::int32_t offset, std::size_t channels);

// An operand of a sum: its zero point is subtracted, and the rest is scaled with 20 more bits (SHIFT_INT8 in
// ExecuTorch's passes_utils.py).
struct Addend {
  std::int32_t zero_point;
  Requantization scale;

  std::int32_t scaled(std::int8_t value) const {
    const std::int32_t distance = wrapping_difference(std::int32_t{value}, zero_point);
    return requantize(wrapping_product(distance, std::int32_t{1} << 20), scale);
  }
};
struct Addition {
  Addend first;
  Addend second;
  Requantization scale;
  OutputRange range;

  std::int8_t sum(std::int8_t left, std::int8_t right) const {
    return in_range(requantize(wrapping_sum(first.scaled(left), second.scaled(right)), scale), range);
  }
};

// to[i] = addition.sum(left[i], right[i])
void add_all(const Addition& addition, const std::int8_t* left, const std::int8_t* right, std::int8_t* to,
             std::size_t count);

// Each has its own multiplier and shift, as Requantization.
struct ChannelScales {
  const std::int32_t* multipliers;
  const std::int32_t* shifts;
  bool are_plain;  // each of them

  ChannelScales from(std::size_t first) const { return {multipliers + first, shifts + first, are_plain}; }
};

// to[i] = sums[i], scaled by its own, in the range
void requantize_all(const std::int32_t* sums, const ChannelScales& scales, const OutputRange& range,
                    std::int8_t* to, std::size_t count);

// The same with one scale for all.
void requantize_all(const std::int32_t* sums, const Requantization& scale, const OutputRange& range,
                    std::int8_t* to, std::size_t count);

// One lane of a softmax, `stride` apart in both: to[i] = 256 × e[i] / Σ e - 128, where e[i] is the element of
// `exponentials` at the maximum's distance from from[i].
void softmax_lane(const float (&exponentials)[256], const std::int8_t* from, std::int8_t* to,
                  std::size_t count, std::size_t stride);

// The same one by one, for every stride. Four sums in turn are those of a vector's lanes.
void softmax_lane_by_element(const float (&exponentials)[256], const std::int8_t* from, std::int8_t* to,
                             std::size_t count, std::size_t stride);

}  // namespace ethosu_sdk::kernels
