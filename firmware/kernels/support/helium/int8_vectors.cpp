#include "kernels/support/int8_vectors.hpp"

#include <arm_mve.h>

#include <limits>

namespace ethosu_sdk::kernels {
namespace {

// Bits of a predicate for 32-bit lanes.
mve_pred16_t lanes_of(std::size_t count) {
  return vctp32q(static_cast<std::uint32_t>(count));
}

// For shifts to the right: rounds half away from zero (CMSIS-NN, arm_divide_by_power_of_two_mve).
int32x4_t requantized(int32x4_t sums, int32x4_t multipliers, int32x4_t shifts) {
  const int32x4_t products = vqrdmulhq_s32(sums, multipliers);
  const int32x4_t negative = vshrq_n_s32(vandq_s32(products, shifts), 31);
  return vrshlq_s32(vqaddq_s32(products, negative), shifts);
}

void requantize_each(const std::int32_t* sums, const std::int32_t* multipliers, const std::int32_t* shifts,
                     const OutputRange& range, std::int8_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = in_range(requantize(sums[i], {multipliers[i], shifts[i]}), range);
  }
}

constexpr std::size_t together = 4;  // channels that read the values once

void dot_products_together(const std::int32_t* starts, std::int32_t* sums, const std::int8_t* values,
                           const std::int8_t* weights, std::size_t step, std::size_t count) {
  const std::int8_t* w0 = weights;
  const std::int8_t* w1 = w0 + step;
  const std::int8_t* w2 = w1 + step;
  const std::int8_t* w3 = w2 + step;
  std::int32_t s0 = starts[0], s1 = starts[1], s2 = starts[2], s3 = starts[3];
  for (std::size_t i = count / 16; i > 0; --i) {
    const int8x16_t x = vld1q_s8(values);
    s0 = vmladavaq_s8(s0, x, vld1q_s8(w0));
    s1 = vmladavaq_s8(s1, x, vld1q_s8(w1));
    s2 = vmladavaq_s8(s2, x, vld1q_s8(w2));
    s3 = vmladavaq_s8(s3, x, vld1q_s8(w3));
    values += 16;
    w0 += 16;
    w1 += 16;
    w2 += 16;
    w3 += 16;
  }
  if (count % 16 != 0) {
    const mve_pred16_t rest = vctp8q(count % 16);
    const int8x16_t x = vld1q_z_s8(values, rest);
    s0 = vmladavaq_s8(s0, x, vld1q_z_s8(w0, rest));
    s1 = vmladavaq_s8(s1, x, vld1q_z_s8(w1, rest));
    s2 = vmladavaq_s8(s2, x, vld1q_z_s8(w2, rest));
    s3 = vmladavaq_s8(s3, x, vld1q_z_s8(w3, rest));
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

std::int32_t dot_product(std::int32_t sum, const std::int8_t* values, const std::int8_t* weights,
                         std::size_t count) {
  for (std::size_t i = count / 16; i > 0; --i) {
    sum = vmladavaq_s8(sum, vld1q_s8(values), vld1q_s8(weights));
    values += 16;
    weights += 16;
  }
  if (count % 16 != 0) {
    const mve_pred16_t rest = vctp8q(count % 16);
    sum = vmladavaq_s8(sum, vld1q_z_s8(values, rest), vld1q_z_s8(weights, rest));
  }
  return sum;
}

// Products of eight channels' values with an offset, which together fit 16 bits.
constexpr std::int32_t largest_offset = 32000;

template <bool all>
int16x8_t load_eight(const std::int8_t* from, mve_pred16_t lanes) {
  return all ? vldrbq_s16(from) : vldrbq_z_s16(from, lanes);
}

// The whole window of eight channels, or of fewer: their sums stay in registers, even and odd channels apart.
// Not inlined, so that the pointers stay in registers too.
template <bool shared, bool all>
__attribute__((noinline)) void add_eight(std::int32_t* sums, const Taps& taps, std::int16_t offset,
                                         std::size_t channels) {
  const mve_pred16_t lanes = vctp16q(static_cast<std::uint32_t>(channels));
  const std::size_t value_step = taps.value_column_step;
  const std::size_t weight_step = taps.weight_column_step;
  const std::int8_t* value_row = taps.values;
  const std::int8_t* weight_row = taps.weights;
  int32x4x2_t totals = vld2q_s32(sums);
  for (std::size_t row = taps.rows; row > 0; --row) {
    const std::int8_t* values = value_row;
    const std::int8_t* weights = weight_row;
    for (std::size_t column = taps.columns; column > 0; --column) {
      const int16x8_t read = shared ? vdupq_n_s16(*values) : load_eight<all>(values, lanes);
      const int16x8_t shifted = vaddq_n_s16(read, offset);
      const int16x8_t weight = load_eight<all>(weights, lanes);
      totals.val[0] = vaddq_s32(totals.val[0], vmullbq_int_s16(shifted, weight));
      totals.val[1] = vaddq_s32(totals.val[1], vmulltq_int_s16(shifted, weight));
      values += value_step;
      weights += weight_step;
    }
    value_row += taps.value_row_step;
    weight_row += taps.weight_row_step;
  }
  vst2q_s32(sums, totals);
}

template <bool shared>
void add_one(std::int32_t& sum, const Taps& taps, std::int32_t offset) {
  for (std::size_t row = 0; row < taps.rows; ++row) {
    const std::int8_t* values = taps.values + row * taps.value_row_step;
    const std::int8_t* weights = taps.weights + row * taps.weight_row_step;
    for (std::size_t column = taps.columns; column > 0; --column) {
      const std::int32_t value = wrapping_sum(std::int32_t{*values}, offset);
      sum = wrapping_sum(sum, wrapping_product(value, std::int32_t{*weights}));
      values += taps.value_column_step;
      weights += taps.weight_column_step;
    }
  }
}

template <bool shared>
void add_windows(std::int32_t* sums, Taps taps, std::int32_t offset, std::size_t channels) {
  const bool fits = offset <= largest_offset && offset >= -largest_offset;
  const std::size_t step = fits ? 8 : 1;
  for (std::size_t k = 0; k < channels; k += step) {
    if (fits) {
      const auto add = channels - k < 8 ? add_eight<shared, false> : add_eight<shared, true>;
      add(sums + k, taps, static_cast<std::int16_t>(offset), channels - k);
    } else {
      add_one<shared>(sums[k], taps, offset);
    }
    taps.values += shared ? 0 : step;
    taps.weights += step;
  }
}

int32x4_t requantized(int32x4_t values, const Requantization& scale) {
  return requantized(values, vdupq_n_s32(scale.multiplier), vdupq_n_s32(scale.shift));
}

int32x4_t scaled(const Addend& addend, int32x4_t values) {
  return requantized(vshlq_n_s32(vsubq_n_s32(values, addend.zero_point), 20), addend.scale);
}

int32x4_t in_range(int32x4_t values, const OutputRange& range) {
  const int32x4_t sums = vaddq_n_s32(values, range.offset);
  return vminq_s32(vmaxq_s32(sums, vdupq_n_s32(range.minimum)), vdupq_n_s32(range.maximum));
}

}  // namespace

void dot_products(const std::int32_t* starts, std::int32_t* sums, const std::int8_t* values,
                  const std::int8_t* weights, std::size_t step, std::size_t count, std::size_t channels) {
  std::size_t k = 0;
  for (; k + together <= channels; k += together) {
    dot_products_together(starts + k, sums + k, values, weights, step, count);
    weights += together * step;
  }
  for (; k < channels; ++k) {
    sums[k] = dot_product(starts[k], values, weights, count);
    weights += step;
  }
}

std::int32_t sum_of(const std::int8_t* values, std::size_t count) {
  std::int32_t sum = 0;
  for (std::size_t i = count / 16; i > 0; --i) {
    sum = vaddvaq_s8(sum, vld1q_s8(values));
    values += 16;
  }
  return count % 16 == 0 ? sum : vaddvaq_s8(sum, vld1q_z_s8(values, vctp8q(count % 16)));
}

void window_products(std::int32_t* sums, const Taps& taps, std::int32_t offset, std::size_t channels) {
  add_windows<false>(sums, taps, offset, channels);
}

void shared_window_products(std::int32_t* sums, const Taps& taps, std::int32_t offset, std::size_t channels) {
  add_windows<true>(sums, taps, offset, channels);
}

void add_all(const Addition& addition, const std::int8_t* left, const std::int8_t* right, std::int8_t* to,
             std::size_t count) {
  std::size_t i = 0;
  if (addition.first.scale.is_plain() && addition.second.scale.is_plain() && addition.scale.is_plain()) {
    for (; i + 4 <= count; i += 4) {
      const int32x4_t first = scaled(addition.first, vldrbq_s32(left + i));
      const int32x4_t sum = vaddq_s32(first, scaled(addition.second, vldrbq_s32(right + i)));
      vstrbq_s32(to + i, in_range(requantized(sum, addition.scale), addition.range));
    }
  }
  for (; i < count; ++i) {
    to[i] = addition.sum(left[i], right[i]);
  }
}

void requantize_all(const std::int32_t* sums, const ChannelScales& scales, const OutputRange& range,
                    std::int8_t* to, std::size_t count) {
  const std::int32_t* multipliers = scales.multipliers;
  const std::int32_t* shifts = scales.shifts;
  if (!scales.are_plain) {
    requantize_each(sums, multipliers, shifts, range, to, count);
    return;
  }
  const int32x4_t least = vdupq_n_s32(range.minimum);
  const int32x4_t most = vdupq_n_s32(range.maximum);
  const std::int32_t offset = range.offset;
  for (std::size_t left = count / 4; left > 0; --left) {
    const int32x4_t scaled = requantized(vld1q_s32(sums), vld1q_s32(multipliers), vld1q_s32(shifts));
    vstrbq_s32(to, vminq_s32(vmaxq_s32(vaddq_n_s32(scaled, offset), least), most));
    sums += 4;
    multipliers += 4;
    shifts += 4;
    to += 4;
  }
  requantize_each(sums, multipliers, shifts, range, to, count % 4);
}

void requantize_all(const std::int32_t* sums, const Requantization& scale, const OutputRange& range,
                    std::int8_t* to, std::size_t count) {
  if (!scale.is_plain()) {
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = in_range(requantize(sums[i], scale), range);
    }
    return;
  }
  for (std::size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = lanes_of(count - i);
    vstrbq_p_s32(to + i, in_range(requantized(vld1q_z_s32(sums + i, lanes), scale), range), lanes);
  }
}

namespace {

std::int8_t maximum_of(const std::int8_t* from, std::size_t count) {
  std::int8_t maximum = -128;
  for (std::size_t i = 0; i < count; i += 16) {
    maximum = vmaxvq_p_s8(maximum, vldrbq_z_s8(from + i, vctp8q(count - i)), vctp8q(count - i));
  }
  return maximum;
}

float32x4_t exponentials_of(const float (&table)[256], std::int32_t maximum, const std::int8_t* from,
                            mve_pred16_t lanes) {
  const int32x4_t distances = vsubq_s32(vdupq_n_s32(maximum), vldrbq_z_s32(from, lanes));
  return vldrwq_gather_shifted_offset_z_f32(table, vreinterpretq_u32_s32(distances), lanes);
}

}  // namespace

void softmax_lane(const float (&exponentials)[256], const std::int8_t* from, std::int8_t* to,
                  std::size_t count, std::size_t stride) {
  if (stride != 1) {
    softmax_lane_by_element(exponentials, from, to, count, stride);
    return;
  }
  const std::int32_t maximum = maximum_of(from, count);
  float32x4_t sums = vdupq_n_f32(0);
  for (std::size_t i = 0; i < count; i += 4) {
    sums = vaddq_f32(sums, exponentials_of(exponentials, maximum, from + i, lanes_of(count - i)));
  }
  const float sum = (vgetq_lane_f32(sums, 0) + vgetq_lane_f32(sums, 1)) +
                    (vgetq_lane_f32(sums, 2) + vgetq_lane_f32(sums, 3));
  const float factor = 256.0F / sum;
  for (std::size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = lanes_of(count - i);
    const float32x4_t shares = vmulq_n_f32(exponentials_of(exponentials, maximum, from + i, lanes), factor);
    const int32x4_t results = vsubq_n_s32(vcvtnq_s32_f32(shares), 128);
    vstrbq_p_s32(to + i, vminq_s32(results, vdupq_n_s32(127)), lanes);
  }
}

void copy_rows(const std::int8_t* from, std::int8_t* to, const CopiedRows& copied) {
  const CopiedRows given = copied;
  for (std::size_t row = given.rows; row > 0; --row) {
    for (std::size_t i = 0; i < given.count; i += 16) {
      const mve_pred16_t lanes = vctp8q(given.count - i);
      vstrbq_p_s8(to + i, vldrbq_z_s8(from + i, lanes), lanes);
    }
    from += given.from_step;
    to += given.to_step;
  }
}

}  // namespace ethosu_sdk::kernels
