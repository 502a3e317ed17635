#include "kernels/support/int8_vectors.hpp"

#include <cstring>

namespace ethosu_sdk::kernels {

void dot_products(const std::int32_t* starts, std::int32_t* sums, const std::int8_t* values,
                  const std::int8_t* weights, std::size_t step, std::size_t count, std::size_t channels) {
  for (std::size_t k = 0; k < channels; ++k) {
    sums[k] = starts[k];
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t product = std::int32_t{values[i]} * std::int32_t{weights[k * step + i]};
      sums[k] = wrapping_sum(sums[k], product);
    }
  }
}

std::int32_t sum_of(const std::int8_t* values, std::size_t count) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum = wrapping_sum(sum, std::int32_t{values[i]});
  }
  return sum;
}

namespace {

template <bool shared>
void add_products(std::int32_t* sums, const Taps& taps, std::int32_t offset, std::size_t channels) {
  for (std::size_t row = 0; row < taps.rows; ++row) {
    for (std::size_t column = 0; column < taps.columns; ++column) {
      const std::int8_t* const values =
          taps.values + row * taps.value_row_step + column * taps.value_column_step;
      const std::int8_t* const weights =
          taps.weights + row * taps.weight_row_step + column * taps.weight_column_step;
      for (std::size_t k = 0; k < channels; ++k) {
        const std::int32_t value = wrapping_sum(std::int32_t{values[shared ? 0 : k]}, offset);
        sums[k] = wrapping_sum(sums[k], wrapping_product(value, std::int32_t{weights[k]}));
      }
    }
  }
}

}  // namespace

void window_products(std::int32_t* sums, const Taps& taps, std::int32_t offset, std::size_t channels) {
  add_products<false>(sums, taps, offset, channels);
}

void shared_window_products(std::int32_t* sums, const Taps& taps, std::int32_t offset, std::size_t channels) {
  add_products<true>(sums, taps, offset, channels);
}

void add_all(const Addition& addition, const std::int8_t* left, const std::int8_t* right, std::int8_t* to,
             std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = addition.sum(left[i], right[i]);
  }
}

void requantize_all(const std::int32_t* sums, const ChannelScales& scales, const OutputRange& range,
                    std::int8_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = in_range(requantize(sums[i], {scales.multipliers[i], scales.shifts[i]}), range);
  }
}

void requantize_all(const std::int32_t* sums, const Requantization& scale, const OutputRange& range,
                    std::int8_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = in_range(requantize(sums[i], scale), range);
  }
}

void softmax_lane(const float (&exponentials)[256], const std::int8_t* from, std::int8_t* to,
                  std::size_t count, std::size_t stride) {
  softmax_lane_by_element(exponentials, from, to, count, stride);
}

void copy_rows(const std::int8_t* from, std::int8_t* to, const CopiedRows& copied) {
  for (std::size_t i = 0; i < copied.rows; ++i) {
    std::memcpy(to + i * copied.to_step, from + i * copied.from_step, copied.count);
  }
}

}  // namespace ethosu_sdk::kernels
