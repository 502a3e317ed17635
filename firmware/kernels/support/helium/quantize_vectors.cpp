// Helium (MVE) has another floating-point arithmetic than the scalar FPU: it flushes denormal numbers to zero
// and saturates conversions (Armv8-M Architecture Reference Manual, StandardFPSCRValue and FPToFixed). Values
// for which that changes a result are left to the caller.
#include "kernels/support/quantize_vectors.hpp"

#include <arm_mve.h>

#include <cmath>
#include <limits>
#include <type_traits>

namespace ethosu_sdk::kernels {
namespace {

// With a factor of this size, a number that is flushed to zero is less than 1/2 after the multiplication, and
// its product with `unit` is a normal number.
constexpr float least_inverse_scale = 0x1p-102F;
constexpr float largest_inverse_scale = 0x1p125F;
// Scaled by this, integers are the least numbers of half precision: its bits are a sign and the integer.
constexpr float unit = 0x1p-24F;
// Up to 2047 the least numbers of half precision follow one another: with such a sum, no integer that is
// rounded coarser gives a result in the range.
constexpr std::int32_t largest_shift = 1024;

// FPSCR.IOC: an operation was invalid, such as the conversion of NaN or of a number that is too large.
constexpr std::uint32_t invalid_operation = 1;
// FPSCR.AHP and FPSCR.FZ16: half precision has no infinity and no NaN in conversions, which are invalid;
// small numbers are flushed to zero.
constexpr std::uint32_t alternative_halves = 1U << 26;
constexpr std::uint32_t flush_halves = 1U << 19;

std::uint32_t floating_point_status() {
  std::uint32_t status = 0;
  asm volatile("vmrs %0, fpscr" : "=r"(status)::"memory");
  return status;
}

void set_floating_point_status(std::uint32_t status) {
  asm volatile("vmsr fpscr, %0" ::"r"(status) : "memory");
}

// FPSCR as the conversions need it, for as long as this lives.
class Conversions {
 public:
  Conversions() {
    set_floating_point_status((before_ & ~(invalid_operation | flush_halves)) | alternative_halves);
  }
  ~Conversions() { set_floating_point_status(before_); }
  Conversions(const Conversions&) = delete;
  Conversions& operator=(const Conversions&) = delete;

  bool were_valid() const { return (floating_point_status() & invalid_operation) == 0; }

 private:
  std::uint32_t before_ = floating_point_status();
};

int32x4_t rounded(float32x4_t values, float inverse_scale) {
  return vcvtnq_s32_f32(vmulq_n_f32(values, inverse_scale));
}

// Saturates to the even elements of the same register. GCC 12.2 copies the register for the intrinsic.
int16x8_t bottom_halves(int32x4_t values) {
  auto halves = vreinterpretq_s16_s32(values);
  asm("vqmovnb.s32 %q0, %q0" : "+w"(halves));
  return halves;
}

// The elements of both in turn, starting with `first`; the same below.
int16x8_t interleaved(int32x4_t first, int32x4_t second) {
  return vqmovntq_s32(bottom_halves(first), second);
}

// What is added to rounded integers so that the range of the bytes begins at 0, and then to the bytes.
struct ByteShift {
  std::uint32_t half;  // bits of half precision
  std::uint32_t least;
};

// Where sixteen bytes go, and how far it is to the next sixteen.
struct Places {
  std::uint8_t offsets[16];
  std::size_t bytes;
};

// In assembly, as GCC 12.2 moves values from register to register, and orders nothing. GNU as 2.40 writes
// VCVTB and VCVTT with other registers, so these are numbers. Bits of half precision are the sign and the
// integer, and negative as 16 bits too. The addition reads as infinity or NaN what the conversion, which has
// none, made of large numbers: infinities saturate, NaN makes the comparison an invalid operation.
//
// 16 elements are in four registers, of which the first two hold all halves, and the first one all bytes, in
// the end. 19 instructions for them: 4 each to load, multiply and convert, 2 to shift and 1 to check that, 2
// to saturate, 1 to flip the signs, 1 to store. A vector takes
// two cycles of its unit: the 11 of the floating-point unit are what the others hide behind.
#define LOAD_PART(part, a, b, c, d, after) \
  "vld4" part ".32 {q" a ", q" b ", q" c ", q" d "}, [%[from]]" after "\n"
#define CONVERT(half, to, from) ".inst.w 0xee3f0e01 + (" half " << 12) + (" to " << 13) + (" from " << 1)\n"
#define SCALE(a) "vmul.f32 q" a ", q" a ", %[factor]\n"
#define IF_SHIFTED(code) ".if %c[shifted]\n" code ".endif\n"
#define SHIFT(a) IF_SHIFTED("vadd.f16 q" a ", q" a ", %[half]\n")
#define SATURATE_EVEN(a) "vqmovunb.s16 q" a ", q" a "\n"
#define SATURATE_ODD(a, b) "vqmovunt.s16 q" a ", q" b "\n"
#define FLIP(a) "vadd.i8 q" a ", q" a ", %[least]\n"
#define IF_STRIDED(code) ".if %c[strided]\n" code ".endif\n"
#define LOAD_OFFSETS(c) IF_STRIDED("vldrb.u8 q" c ", [%[offsets]]\n")
#define STORE(a, c)                                                          \
  IF_STRIDED("vstrb.8 q" a ", [%[to], q" c "]\nadd %[to], %[to], %[step]\n") \
  ".if !%c[strided]\nvstrb.8 q" a ", [%[to]], #16\n.endif\n"
// From floats to shifted halves, among eight other instructions; then the bytes' offsets, if they have any.
#define TO_HALVES(a, b, c, d, o1, o2, o3, o4, o5, o6, o7, o8)                        \
  SCALE(a) o1 SCALE(b) SCALE(c) o2 SCALE(d) CONVERT("0", a, a) o3 CONVERT("0", b, b) \
  o4 CONVERT("1", a, c)                                                              \
  o5 CONVERT("1", b, d)                                                              \
  o6 SHIFT(a)                                                                        \
  o7 SHIFT(b)                                                                        \
  o8 IF_SHIFTED("vcmp.f16 ge, q" a ", q" b "\n") LOAD_OFFSETS(c)
// The same of four registers, while the four others are stored and loaded again.
#define TO_HALVES_AND_NEXT(a, b, c, d, e, f, g, h)                                                          \
  TO_HALVES(a, b, c, d, SATURATE_EVEN(e), SATURATE_ODD(e, f), FLIP(e), STORE(e, g),                         \
            LOAD_PART("0", e, f, g, h, ""), LOAD_PART("1", e, f, g, h, ""), LOAD_PART("2", e, f, g, h, ""), \
            LOAD_PART("3", e, f, g, h, "!"))
#define LOAD(a, b, c, d)         \
  LOAD_PART("0", a, b, c, d, "") \
  LOAD_PART("1", a, b, c, d, "") LOAD_PART("2", a, b, c, d, "") LOAD_PART("3", a, b, c, d, "!")
#define TO_BYTES(a, b, c) SATURATE_EVEN(a) SATURATE_ODD(a, b) FLIP(a) STORE(a, c)

template <bool shifted, bool strided>
void quantize_sixteen(const float*& from, std::uint8_t*& to, const Places& places, float factor,
                      const ByteShift& shift) {
  asm volatile(
      LOAD("0", "1", "2", "3") TO_HALVES("0", "1", "2", "3", , , , , , , , ) TO_BYTES("0", "1", "2")
      : [from] "+r"(from), [to] "+r"(to)
      : [factor] "r"(factor), [half] "r"(shift.half), [least] "r"(shift.least), [offsets] "r"(places.offsets),
        [step] "r"(places.bytes), [shifted] "i"(shifted), [strided] "i"(strided)
      : "memory", "q0", "q1", "q2", "q3", "p0");
}

// `turns` + 1 times 32 elements. While 16 are converted, those before are stored and the next ones loaded.
template <bool shifted, bool strided>
void quantize_pairs(const float*& from, std::uint8_t*& to, const Places& places, std::size_t turns,
                    float factor, const ByteShift& shift) {
  asm volatile(
      LOAD("0", "1", "2", "3")
      TO_HALVES("0", "1", "2", "3", LOAD_PART("0", "4", "5", "6", "7", ""), LOAD_PART("1", "4", "5", "6", "7", ""),
                LOAD_PART("2", "4", "5", "6", "7", ""), LOAD_PART("3", "4", "5", "6", "7", "!"), , , , )
      "wls lr, %[turns], 2f\n"
      "1:\n"
      TO_HALVES_AND_NEXT("4", "5", "6", "7", "0", "1", "2", "3")
      TO_HALVES_AND_NEXT("0", "1", "2", "3", "4", "5", "6", "7")
      "le lr, 1b\n"
      "2:\n"
      TO_HALVES("4", "5", "6", "7", SATURATE_EVEN("0"), SATURATE_ODD("0", "1"), FLIP("0"), STORE("0", "2"), , , , )
      TO_BYTES("4", "5", "6")
      : [from] "+r"(from), [to] "+r"(to)
      : [turns] "r"(turns), [factor] "r"(factor), [half] "r"(shift.half), [least] "r"(shift.least),
        [offsets] "r"(places.offsets), [step] "r"(places.bytes), [shifted] "i"(shifted), [strided] "i"(strided)
      : "memory", "cc", "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "p0");
}

template <bool shifted, bool strided>
std::size_t quantize_bytes(const float* from, std::uint8_t* to, const Places& places, std::size_t count,
                           float factor, const ByteShift& shift) {
  const std::size_t pairs = count / 32;
  if (pairs > 0) {
    quantize_pairs<shifted, strided>(from, to, places, pairs - 1, factor, shift);
  }
  if (count % 32 >= 16) {
    quantize_sixteen<shifted, strided>(from, to, places, factor, shift);
  }
  return count / 16 * 16;
}

template <typename Byte>
std::size_t quantize_bytes(const float* from, Byte* to, std::size_t to_step, std::size_t count,
                           float inverse_scale, std::int32_t zero_point) {
  constexpr std::int32_t least = std::numeric_limits<Byte>::min();
  constexpr std::uint32_t sign = 0x8000;
  const std::int32_t distance = zero_point - least;
  if (zero_point > largest_shift + least || zero_point < least - largest_shift) {
    return 0;
  }
  const auto size = static_cast<std::uint32_t>(std::abs(distance));
  const ByteShift shift = {distance < 0 ? sign | size : size, static_cast<std::uint8_t>(least)};
  Places places{{}, 16 * to_step};
  vst1q_u8(places.offsets, vmulq_n_u8(vidupq_n_u8(0, 1), static_cast<std::uint8_t>(to_step)));
  const auto contiguous = distance == 0 ? quantize_bytes<false, false> : quantize_bytes<true, false>;
  const auto strided = distance == 0 ? quantize_bytes<false, true> : quantize_bytes<true, true>;
  const auto convert = to_step == 1 ? contiguous : strided;
  return convert(from, reinterpret_cast<std::uint8_t*>(to), places, count, inverse_scale * unit, shift);
}

// Within this bound, the reference's sum of floats is exact where it is in the range.
constexpr std::int32_t largest_zero_point = 1 << 22;

std::size_t quantize_halfwords(const float* from, std::int16_t* to, std::size_t count, float inverse_scale,
                               std::int32_t zero_point) {
  if (zero_point > largest_zero_point || zero_point < -largest_zero_point) {
    return 0;
  }
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

int8x16_t duplicated(std::int8_t value) {
  return vdupq_n_s8(value);
}
uint8x16_t duplicated(std::uint8_t value) {
  return vdupq_n_u8(value);
}
int16x8_t duplicated(std::int16_t value) {
  return vdupq_n_s16(value);
}

// For ranges that are narrower than the type's, such as -32767 to 32767 of Arm's int16. `count` fills
// vectors.
template <typename Integer>
void clamp_all(Integer* values, std::size_t count, Integer minimum, Integer maximum) {
  using Limits = std::numeric_limits<Integer>;
  if (minimum == Limits::min() && maximum == Limits::max()) {
    return;
  }
  constexpr std::size_t lanes = 16 / sizeof(Integer);
  for (std::size_t i = count / lanes; i > 0; --i) {
    vst1q(values, vminq(vmaxq(vld1q(values), duplicated(minimum)), duplicated(maximum)));
    values += lanes;
  }
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
std::size_t quantize_vectors(const float* from, Integer* to, std::size_t to_step, std::size_t count,
                             float inverse_scale, std::int32_t zero_point, Integer minimum, Integer maximum) {
  const float size = std::fabs(inverse_scale);
  if (!quantizes_in_steps(to_step, minimum, maximum) ||
      !(size >= least_inverse_scale && size <= largest_inverse_scale)) {
    return 0;
  }
  const Conversions conversions;
  std::size_t done = 0;
  if constexpr (sizeof(Integer) == 1) {
    done = quantize_bytes(from, to, to_step, count, inverse_scale, zero_point);
    clamp_all(to, done, minimum, maximum);  // of results beside each other
  } else if constexpr (std::is_same_v<Integer, std::int16_t>) {
    done = quantize_halfwords(from, to, count, inverse_scale, zero_point);
    clamp_all(to, done, minimum, maximum);
  }
  return conversions.were_valid() ? done : 0;
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
