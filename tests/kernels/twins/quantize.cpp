// The vectors of quantize_vectors.hpp against its scalar functions, on random numbers, scales and zero
// points.
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/support/quantize_vectors.hpp"
#include "random.hpp"
#include "start.hpp"

namespace {

using namespace ethosu_sdk::kernels;

constexpr std::size_t length = 300;
constexpr std::size_t longest_step = 19;
constexpr std::size_t long_length = 2100;  // enough for the table of dequantize_vectors
constexpr std::size_t cases = 2000;

std::uint32_t vectorised, unlike;

// What a block is left to the scalar loop for, and its neighbours: infinities, NaN, and numbers around the
// largest of half precision, of int32 and of int64.
float extreme(Random& random, float scale) {
  const float sign = random.below(2) == 0 ? 1.0F : -1.0F;
  const float mantissa = 1.0F + static_cast<float>(random.below(1000)) * 1e-3F;
  switch (random.below(4)) {
    case 0:
      return sign * std::numeric_limits<float>::infinity();
    case 1:
      return sign * std::numeric_limits<float>::quiet_NaN();
    case 2:
      return std::ldexp(sign * mantissa, random.between(39, 40)) * scale;
    default:
      return std::ldexp(sign * mantissa, random.between(29, 70)) * scale;
  }
}

// Any bits, or a multiple of a half times the scale and its neighbours, or a value in the range, or one whose
// sum with the zero point is about 0. Extreme ones rarely, so that most blocks have none.
float number(Random& random, float scale, std::int32_t zero_point) {
  switch (random.below(5)) {
    case 0: {
      const std::uint32_t bits = random.next();
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      if (std::fabs(value) < std::fabs(scale) * 0x1p28F) {
        return value;
      }
      return random.below(60) == 0 ? extreme(random, scale) : scale;
    }
    case 1:
      return static_cast<float>(random.between(-600, 600)) * 0.5F * scale;
    case 2: {
      const float tie = (static_cast<float>(random.between(-300, 300)) + 0.5F) * scale;
      return std::nextafterf(tie, random.below(2) == 0 ? 1e38F : -1e38F);
    }
    case 3:
      return (static_cast<float>(random.between(-600, 600)) * 0.5F - static_cast<float>(zero_point)) * scale;
    default:
      return static_cast<float>(random.between(-2000000, 2000000)) * 1e-4F * scale;
  }
}

float scale_of(Random& random) {
  const float mantissa = 1.0F + static_cast<float>(random.below(1000)) * 1e-3F;
  const std::uint32_t kind = random.below(16);
  const int exponent = kind == 0   ? random.between(-149, 127)
                       : kind == 1 ? random.between(-130, -122)
                                   : random.between(-20, 5);
  return std::ldexp(random.below(16) == 0 ? -mantissa : mantissa, exponent);
}

template <typename Integer>
std::int32_t zero_point_of(Random& random) {
  using Limits = std::numeric_limits<Integer>;
  switch (random.below(16)) {
    case 0:
      return Limits::min();
    case 1:
      return random.between(-4000, 4000);
    case 2:
      return random.between(-(1 << 30), 1 << 30);
    default:
      break;
  }
  return sizeof(Integer) == 4 || random.below(8) == 0 ? random.between(-100000, 100000)
                                                      : random.between(Limits::min(), Limits::max());
}

// Of FPSCR: IOC, FZ16, AHP. What a caller has there changes no result. The last two stay as they are.
constexpr std::uint32_t status_bits = 1 | 1U << 19 | 1U << 26;

std::uint32_t floating_point_status() {
  std::uint32_t status = 0;
  asm volatile("vmrs %0, fpscr" : "=r"(status)::"memory");
  return status;
}

void change_status(Random& random) {
  const std::uint32_t status = floating_point_status() & ~status_bits;
  asm volatile("vmsr fpscr, %0" ::"r"(status | (random.next() & status_bits)) : "memory");
}

// The type's own range, Arm's for int16 and its like, or any.
template <typename Integer>
void choose_range(Random& random, Integer& minimum, Integer& maximum) {
  minimum = std::numeric_limits<Integer>::min();
  maximum = std::numeric_limits<Integer>::max();
  const std::uint32_t kind = random.below(4);
  if (kind == 0) {
    minimum = static_cast<Integer>(minimum + 1);
  } else if (kind == 1) {
    const auto first = static_cast<Integer>(random.next()), second = static_cast<Integer>(random.next());
    minimum = first < second ? first : second;
    maximum = first < second ? second : first;
  }
}

template <typename Integer>
void quantize(Random& random) {
  constexpr Integer untouched = 77;
  static float from[length];
  static Integer to[longest_step * length];
  const float scale = scale_of(random);
  const float inverse = 1.0F / scale;
  const std::int32_t zero_point = zero_point_of<Integer>(random);
  const std::size_t count = random.below(length);
  Integer minimum = 0, maximum = 0;
  choose_range(random, minimum, maximum);
  for (float& value : from) {
    value = number(random, scale, zero_point);
  }
  const std::size_t step =
      random.below(sizeof(Integer) == 1 ? 3 : 16) == 0 ? 1 + random.below(longest_step) : 1;
  for (Integer& value : to) {
    value = untouched;
  }
  change_status(random);
  const std::uint32_t status = floating_point_status();
  const std::size_t done = quantize_vectors(from, to, step, count, inverse, zero_point, minimum, maximum);
  unlike += ((floating_point_status() ^ status) & status_bits & ~1U) == 0 ? 0 : 1;
  vectorised += done > 0 ? 1 : 0;
  for (std::size_t i = 0; i < done; ++i) {
    const auto wanted = quantized<Integer>(from[i], inverse, zero_point, minimum, maximum);
    unlike += to[i * step] == wanted ? 0 : 1;
    for (std::size_t k = 1; k < step; ++k) {
      unlike += to[i * step + k] == untouched ? 0 : 1;
    }
  }
}

template <typename Integer>
void dequantize(Random& random, std::size_t count) {
  static Integer from[long_length];
  static float to[long_length];
  const float scale = scale_of(random);
  const std::int32_t zero_point = zero_point_of<Integer>(random);
  for (std::size_t i = 0; i < count; ++i) {
    from[i] = static_cast<Integer>(random.next());
  }
  const std::size_t done = dequantize_vectors(from, to, count, scale, zero_point);
  vectorised += done > 0 ? 1 : 0;
  for (std::size_t i = 0; i < done; ++i) {
    const float wanted = dequantized(from[i], scale, zero_point);
    unlike += std::memcmp(&to[i], &wanted, sizeof wanted) == 0 ? 0 : 1;
  }
}

void report(const char* name) {
  print(name);
  print(" cases ");
  print(cases);
  print(" vectorised ");
  print(vectorised);
  print(" unlike ");
  print(unlike);
  print("\n");
  vectorised = 0;
  unlike = 0;
}

template <typename Integer>
void test(const char* name) {
  Random random;
  for (std::size_t i = 0; i < cases; ++i) {
    quantize<Integer>(random);
  }
  print("quantize ");
  report(name);
  for (std::size_t i = 0; i < cases; ++i) {
    dequantize<Integer>(random, i % 100 == 0 ? long_length : random.below(length));
  }
  print("dequantize ");
  report(name);
}

}  // namespace

int main() {
  test<std::int8_t>("int8");
  test<std::uint8_t>("uint8");
  test<std::int16_t>("int16");
  test<std::int32_t>("int32");
  return 0;
}
