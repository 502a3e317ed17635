// Helium (MVE) has another floating-point arithmetic than the scalar FPU: it flushes denormal numbers to zero
// and saturates conversions (Armv8-M Architecture Reference Manual, StandardFPSCRValue and FPToFixed). Values
// for which that changes a result are left to the caller.
#include "kernels/support/quantize_vectors.hpp"

#include <arm_mve.h>

#include <cmath>
#include <type_traits>

namespace ethosu_sdk::kernels {
namespace {

// With a factor of this size, a number that is flushed to zero is less than 1/2 after the multiplication.
constexpr float least_normal = 0x1p-126F;
constexpr float largest_inverse_scale = 0x1p125F;
// Within this bound, 16-bit saturation of a value changes nothing in the 8-bit result.
constexpr std::int32_t largest_zero_point = 32000;

// FPSCR.IOC: an operation was invalid, here the conversion of NaN or of a number beyond int32.
constexpr std::uint32_t invalid_operation = 1;

std::uint32_t floating_point_status() {
  std::uint32_t status = 0;
  asm volatile("vmrs %0, fpscr" : "=r"(status)::"memory");
  return status;
}

void clear_invalid_operation() {
  const std::uint32_t status = floating_point_status() & ~invalid_operation;
  asm volatile("vmsr fpscr, %0" ::"r"(status) : "memory");
}

int32x4_t rounded(float32x4_t values, float inverse_scale) {
  return vcvtnq_s32_f32(vmulq_n_f32(values, inverse_scale));
}

// Saturates to the even elements of the same register. GCC 12.2 copies the register for the intrinsic.
int16x8_t bottom_halves(int32x4_t values) {
  auto halves = vreinterpretq_s16_s32(values);
  asm("vqmovnb.s32 %q0, %q0" : "+w"(halves));
  return halves;
}

int8x16_t bottom_bytes(int16x8_t values) {
  auto bytes = vreinterpretq_s8_s16(values);
  asm("vqmovnb.s16 %q0, %q0" : "+w"(bytes));
  return bytes;
}

uint8x16_t bottom_unsigned_bytes(int16x8_t values) {
  auto bytes = vreinterpretq_u8_s16(values);
  asm("vqmovunb.s16 %q0, %q0" : "+w"(bytes));
  return bytes;
}

// The elements of both in turn, starting with `first`; the same below.
int16x8_t interleaved(int32x4_t first, int32x4_t second) {
  return vqmovntq_s32(bottom_halves(first), second);
}

void store_interleaved(std::int8_t* to, int16x8_t first, int16x8_t second) {
  vst1q_s8(to, vqmovntq_s16(bottom_bytes(first), second));
}

void store_interleaved(std::uint8_t* to, int16x8_t first, int16x8_t second) {
  vst1q_u8(to, vqmovuntq_s16(bottom_unsigned_bytes(first), second));
}

// 21 instructions for 16 elements and one of the loop: 4 each to load, multiply, convert and saturate to 16
// bits, 2 to add the zero point, 2 to saturate to 8 bits, 1 to store. The product is rounded before the sum,
// as ExecuTorch's is, so that no fused multiplication can do both.
template <typename Byte>
std::size_t quantize_bytes(const float* from, Byte* to, std::size_t count, float inverse_scale,
                           std::int16_t zero_point) {
  for (std::size_t i = count / 16; i > 0; --i) {
    const float32x4x4_t values = vld4q_f32(from);
    const int16x8_t even =
        interleaved(rounded(values.val[0], inverse_scale), rounded(values.val[2], inverse_scale));
    const int16x8_t odd =
        interleaved(rounded(values.val[1], inverse_scale), rounded(values.val[3], inverse_scale));
    store_interleaved(to, vqaddq_n_s16(even, zero_point), vqaddq_n_s16(odd, zero_point));
    from += 16;
    to += 16;
  }
  return count / 16 * 16;
}

std::size_t quantize_halfwords(const float* from, std::int16_t* to, std::size_t count, float inverse_scale,
                               std::int32_t zero_point) {
  for (std::size_t i = count / 8; i > 0; --i) {
    const float32x4x2_t values = vld2q_f32(from);
    const int32x4_t even = vqaddq_n_s32(rounded(values.val[0], inverse_scale), zero_point);
    const int32x4_t odd = vqaddq_n_s32(rounded(values.val[1], inverse_scale), zero_point);
    vst1q_s16(to, interleaved(even, odd));
    from += 8;
    to += 8;
  }
  return count / 8 * 8;
}

int32x4_t load_four(const std::uint8_t* from) {
  return vreinterpretq_s32_u32(vldrbq_u32(from));
}
int32x4_t load_four(const std::int8_t* from) {
  return vldrbq_s32(from);
}
int32x4_t load_four(const std::int16_t* from) {
  return vldrhq_s32(from);
}
int32x4_t load_four(const std::int32_t* from) {
  return vld1q_s32(from);
}

template <typename Integer>
std::size_t dequantize_each(const Integer* from, float* to, std::size_t count, float scale,
                            std::int32_t zero_point) {
  for (std::size_t i = count / 4; i > 0; --i) {
    vst1q_f32(to, vmulq_n_f32(vcvtq_f32_s32(vsubq_n_s32(load_four(from), zero_point)), scale));
    from += 4;
    to += 4;
  }
  return count / 4 * 4;
}

// From this number of elements on, a table of the 256 results pays.
constexpr std::size_t least_for_table = 2048;

// By the unsigned value of the byte.
template <typename Byte>
void fill_table(float (&table)[256], float scale, std::int32_t zero_point) {
  std::uint8_t indices[256];
  for (std::uint32_t i = 0; i < 256; i += 16) {
    vst1q_u8(indices + i, vidupq_n_u8(i, 1));
  }
  const auto* const values = reinterpret_cast<const Byte*>(indices);
  std::size_t filled = std::isnormal(scale) ? dequantize_each(values, table, 256, scale, zero_point) : 0;
  for (; filled < 256; ++filled) {
    table[filled] = dequantized(values[filled], scale, zero_point);
  }
}

// With the pointers moved on by the load and the store themselves. GCC 12.2 adds moves for each of four.
void dequantize_four(const float (&table)[256], const std::uint8_t*& bytes, float*& to) {
  uint32x4_t indices;
  asm volatile("vldrb.u32 %q0, [%1], #4" : "=w"(indices), "+r"(bytes)::"memory");
  const float32x4_t values = vldrwq_gather_shifted_offset_f32(table, indices);
  asm volatile("vstrw.32 %q1, [%0], #16" : "+r"(to) : "w"(values) : "memory");
}

// In steps of sixteen: the loop's own instruction is a quarter of four.
template <typename Byte>
std::size_t dequantize_by_table(const Byte* from, float* to, std::size_t count, float scale,
                                std::int32_t zero_point) {
  float table[256];
  fill_table<Byte>(table, scale, zero_point);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(from);
  for (std::size_t i = count / 16; i > 0; --i) {
    dequantize_four(table, bytes, to);
    dequantize_four(table, bytes, to);
    dequantize_four(table, bytes, to);
    dequantize_four(table, bytes, to);
  }
  return count / 16 * 16;
}

}  // namespace

template <typename Integer>
std::size_t quantize_vectors(const float* from, Integer* to, std::size_t count, float inverse_scale,
                             std::int32_t zero_point) {
  const float size = std::fabs(inverse_scale);
  if (!(size >= least_normal && size <= largest_inverse_scale) || zero_point > largest_zero_point ||
      zero_point < -largest_zero_point) {
    return 0;
  }
  clear_invalid_operation();
  std::size_t done = 0;
  if constexpr (sizeof(Integer) == 1) {
    done = quantize_bytes(from, to, count, inverse_scale, static_cast<std::int16_t>(zero_point));
  } else if constexpr (std::is_same_v<Integer, std::int16_t>) {
    done = quantize_halfwords(from, to, count, inverse_scale, zero_point);
  }
  return (floating_point_status() & invalid_operation) == 0 ? done : 0;
}

template <typename Integer>
std::size_t dequantize_vectors(const Integer* from, float* to, std::size_t count, float scale,
                               std::int32_t zero_point) {
  if constexpr (sizeof(Integer) == 1) {
    if (count >= least_for_table) {
      return dequantize_by_table(from, to, count, scale, zero_point);
    }
  }
  // A product with a normal number is no denormal: integers other than 0 are at least 1.
  return std::isnormal(scale) ? dequantize_each(from, to, count, scale, zero_point) : 0;
}

}  // namespace ethosu_sdk::kernels

#include "kernels/support/quantize_vectors_instances.hpp"
