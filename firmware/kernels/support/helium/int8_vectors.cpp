#include "kernels/support/int8_vectors.hpp"

#include <arm_mve.h>

#include <limits>

namespace ethosu_sdk::kernels {
namespace {

// Bits of a predicate for 32-bit lanes.
mve_pred16_t lanes_of(std::size_t count) {
  return vctp32q(static_cast<std::uint32_t>(count));
}

// Whether saturation cannot change a product: a left shift could overflow, as could the product of two
// minima.
mve_pred16_t plain_lanes(int32x4_t multipliers, int32x4_t shifts, mve_pred16_t lanes) {
  const mve_pred16_t right = vcmpleq_m_n_s32(shifts, 0, lanes);
  return vcmpgtq_m_n_s32(multipliers, std::numeric_limits<std::int32_t>::min(), right);
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

void dot_products_together(std::int32_t* sums, const std::int8_t* values, const std::int8_t* weights,
                           std::size_t step, std::size_t count) {
  const std::int8_t* w0 = weights;
  const std::int8_t* w1 = w0 + step;
  const std::int8_t* w2 = w1 + step;
  const std::int8_t* w3 = w2 + step;
  std::int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
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

// One tap of four channels; `shared` ones read the same value.
template <bool shared>
int32x4_t add_products(int32x4_t sum, const std::int8_t* values, const std::int8_t* weights,
                       std::int32_t offset) {
  if constexpr (shared) {
    return vmlaq_n_s32(sum, vldrbq_s32(weights), wrapping_sum(std::int32_t{*values}, offset));
  } else {
    return vaddq_s32(sum, vmulq_s32(vaddq_n_s32(vldrbq_s32(values), offset), vldrbq_s32(weights)));
  }
}

// The whole window of sixteen channels: their sums stay in registers.
template <bool shared>
void add_sixteen(std::int32_t* sums, const Taps& taps, std::int32_t offset) {
  constexpr std::size_t next = shared ? 0 : 4;  // values of the next four channels
  int32x4_t s0 = vld1q_s32(sums);
  int32x4_t s1 = vld1q_s32(sums + 4);
  int32x4_t s2 = vld1q_s32(sums + 8);
  int32x4_t s3 = vld1q_s32(sums + 12);
  for (std::size_t row = 0; row < taps.rows; ++row) {
    const std::int8_t* values = taps.values + row * taps.value_row_step;
    const std::int8_t* weights = taps.weights + row * taps.weight_row_step;
    for (std::size_t column = taps.columns; column > 0; --column) {
      s0 = add_products<shared>(s0, values, weights, offset);
      s1 = add_products<shared>(s1, values + next, weights + 4, offset);
      s2 = add_products<shared>(s2, values + 2 * next, weights + 8, offset);
      s3 = add_products<shared>(s3, values + 3 * next, weights + 12, offset);
      values += taps.value_column_step;
      weights += taps.weight_column_step;
    }
  }
  vst1q_s32(sums, s0);
  vst1q_s32(sums + 4, s1);
  vst1q_s32(sums + 8, s2);
  vst1q_s32(sums + 12, s3);
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
  std::size_t k = 0;
  for (; k + 16 <= channels; k += 16) {
    add_sixteen<shared>(sums + k, taps, offset);
    taps.values += shared ? 0 : 16;
    taps.weights += 16;
  }
  for (; k < channels; ++k) {
    add_one<shared>(sums[k], taps, offset);
    taps.values += shared ? 0 : 1;
    taps.weights += 1;
  }
}

// Whether `requantized` has the bits of requantize().
bool is_plain(const Requantization& scale) {
  return scale.shift <= 0 && scale.multiplier > std::numeric_limits<std::int32_t>::min();
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

void dot_products(std::int32_t* sums, const std::int8_t* values, const std::int8_t* weights, std::size_t step,
                  std::size_t count, std::size_t channels) {
  std::size_t k = 0;
  for (; k + together <= channels; k += together) {
    dot_products_together(sums + k, values, weights + k * step, step, count);
  }
  for (; k < channels; ++k) {
    sums[k] = dot_product(sums[k], values, weights + k * step, count);
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
  if (is_plain(addition.first.scale) && is_plain(addition.second.scale) && is_plain(addition.scale)) {
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

void requantize_all(const std::int32_t* sums, const std::int32_t* multipliers, const std::int32_t* shifts,
                    const OutputRange& range, std::int8_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 4) {
    const mve_pred16_t lanes = lanes_of(count - i);
    const int32x4_t multiplier = vld1q_z_s32(multipliers + i, lanes);
    const int32x4_t shift = vld1q_z_s32(shifts + i, lanes);
    if (plain_lanes(multiplier, shift, lanes) != lanes) {
      const std::size_t left = count - i;
      requantize_each(sums + i, multipliers + i, shifts + i, range, to + i, left < 4 ? left : 4);
      continue;
    }
    const int32x4_t scaled = requantized(vld1q_z_s32(sums + i, lanes), multiplier, shift);
    vstrbq_p_s32(to + i, in_range(scaled, range), lanes);
  }
}

void requantize_all(const std::int32_t* sums, const Requantization& scale, const OutputRange& range,
                    std::int8_t* to, std::size_t count) {
  if (!is_plain(scale)) {
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

}  // namespace ethosu_sdk::kernels
