// The functions of int8_vectors.hpp against loops element by element, on random numbers and lengths.
#include <cstring>

#include "kernels/support/int8_vectors.hpp"
#include "random.hpp"
#include "start.hpp"

namespace {

using namespace ethosu_sdk::kernels;

constexpr std::size_t cases = 2000;
constexpr std::size_t longest = 70;

std::int8_t left[longest], found[longest], wanted[longest];
std::int8_t values[1000], weights[1000];
std::int32_t sums[longest + 8], start[longest], multipliers[longest], shifts[longest];

void fill(Random& random) {
  for (std::size_t i = 0; i < sizeof values; ++i) {
    values[i] = static_cast<std::int8_t>(random.next());
    weights[i] = random.below(8) == 0 ? std::int8_t{-128} : static_cast<std::int8_t>(random.next());
  }
  for (std::size_t i = 0; i < longest; ++i) {
    left[i] = static_cast<std::int8_t>(random.next());
    // Small sums, and any bits, the least and the greatest among them.
    const std::int32_t far[] = {static_cast<std::int32_t>(random.next()), -2147483647 - 1, 2147483647};
    start[i] = random.below(4) == 0 ? far[random.below(3)] : random.between(-400000, 400000);
    multipliers[i] = random.below(16) == 0 ? -2147483647 - 1 : static_cast<std::int32_t>(random.next());
    shifts[i] = random.below(16) == 0 ? random.between(-31, 31) : random.between(-20, 0);
  }
}

bool dots(Random& random, std::size_t count) {
  const std::size_t step = random.below(longest), channels = random.below(11);
  const bool in_place = random.below(2) == 0;
  std::memcpy(sums, start, sizeof start);
  dot_products(in_place ? sums : start, sums, left, weights, step, count, channels);
  bool same = true;
  for (std::size_t k = 0; k < longest; ++k) {
    auto sum = static_cast<std::uint32_t>(start[k]);
    for (std::size_t i = 0; i < count && k < channels; ++i) {
      sum += static_cast<std::uint32_t>(left[i] * weights[k * step + i]);
    }
    same = same && static_cast<std::uint32_t>(sums[k]) == sum;
  }
  return same;
}

bool copy(Random& random, std::size_t count) {
  const CopiedRows copied = {random.below(5), count % 40, random.below(200), random.below(60) + count % 40};
  static std::int8_t copies[400], expected[400];
  std::memset(copies, 0x55, sizeof copies);
  std::memset(expected, 0x55, sizeof expected);
  copy_rows(values, copies, copied);
  for (std::size_t i = 0; i < copied.rows * copied.count; ++i) {
    const std::size_t row = i / copied.count, at = i % copied.count;
    expected[row * copied.to_step + at] = values[row * copied.from_step + at];
  }
  return std::memcmp(copies, expected, sizeof copies) == 0;
}

bool total(Random& random, std::size_t count) {
  (void)random;
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += left[i];
  }
  return sum_of(left, count) == sum;
}

template <bool shared>
bool windows(Random& random, std::size_t count) {
  const std::int32_t offset = random.below(8) == 0 ? static_cast<std::int32_t>(random.next())
                                                   : random.between(-128, 128);
  const Taps taps = {values,           weights,          random.below(4),  random.below(4),
                     random.below(90), random.below(90), random.below(90), random.below(90)};
  std::memcpy(sums, start, sizeof start);
  (shared ? shared_window_products : window_products)(sums, taps, offset, count);
  bool same = true;
  for (std::size_t k = 0; k < longest; ++k) {
    auto sum = static_cast<std::uint32_t>(start[k]);
    for (std::size_t i = 0; i < taps.rows && k < count; ++i) {
      for (std::size_t j = 0; j < taps.columns; ++j) {
        const std::int8_t value = values[i * taps.value_row_step + j * taps.value_column_step + (shared ? 0 : k)];
        const std::int8_t weight = weights[i * taps.weight_row_step + j * taps.weight_column_step + k];
        sum += (static_cast<std::uint32_t>(value) + static_cast<std::uint32_t>(offset)) *
               static_cast<std::uint32_t>(weight);
      }
    }
    same = same && static_cast<std::uint32_t>(sums[k]) == sum;
  }
  return same;
}

bool scale(Random& random, std::size_t count) {
  OutputRange range;
  range.offset = random.below(8) == 0 ? static_cast<std::int32_t>(random.next()) : random.between(-128, 127);
  range.minimum = random.between(-128, 0);
  range.maximum = random.between(0, 127);
  std::memset(found, 0x55, sizeof found);
  std::memset(wanted, 0x55, sizeof wanted);
  bool are_plain = true;
  for (std::size_t i = 0; i < count; ++i) {
    are_plain = are_plain && Requantization{multipliers[i], shifts[i]}.is_plain();
  }
  requantize_all(start, ChannelScales{multipliers, shifts, are_plain}, range, found, count);
  for (std::size_t i = 0; i < count; ++i) {
    wanted[i] = in_range(requantize(start[i], {multipliers[i], shifts[i]}), range);
  }
  return std::memcmp(found, wanted, sizeof found) == 0;
}

Requantization some_scale(Random& random) {
  return {random.below(16) == 0 ? -2147483647 - 1 : static_cast<std::int32_t>(random.next()),
          random.below(16) == 0 ? random.between(-31, 31) : random.between(-20, 0)};
}

bool add(Random& random, std::size_t count) {
  const Addition addition = {{random.between(-128, 127), some_scale(random)},
                             {random.between(-128, 127), some_scale(random)},
                             some_scale(random),
                             {random.between(-128, 127), random.between(-128, 0), random.between(0, 127)}};
  std::memset(found, 0x55, sizeof found);
  std::memset(wanted, 0x55, sizeof wanted);
  add_all(addition, left, weights, found, count);
  for (std::size_t i = 0; i < count; ++i) {
    wanted[i] = addition.sum(left[i], weights[i]);
  }
  return std::memcmp(found, wanted, sizeof found) == 0;
}

bool scale_by_one(Random& random, std::size_t count) {
  const Requantization by = some_scale(random);
  const OutputRange range = {random.between(-128, 127), random.between(-128, 0), random.between(0, 127)};
  std::memset(found, 0x55, sizeof found);
  std::memset(wanted, 0x55, sizeof wanted);
  requantize_all(start, by, range, found, count);
  for (std::size_t i = 0; i < count; ++i) {
    wanted[i] = in_range(requantize(start[i], by), range);
  }
  return std::memcmp(found, wanted, sizeof found) == 0;
}

bool soften(Random& random, std::size_t count) {
  static float exponentials[256];
  exponentials[0] = 1;
  const float ratio = 1.0F - static_cast<float>(random.below(1000)) * (random.below(2) == 0 ? 1e-6F : 1e-3F);
  for (std::size_t i = 1; i < 256; ++i) {
    const float next = exponentials[i - 1] * ratio;
    exponentials[i] = next < 0x1p-126F ? 0 : next;
  }
  const std::size_t stride = random.below(4) == 0 ? 2 : 1;
  const std::size_t lane = count / stride + (count == 0 ? 1 : 0);
  std::memset(found, 0x55, sizeof found);
  std::memset(wanted, 0x55, sizeof wanted);
  softmax_lane(exponentials, left, found, lane, stride);
  softmax_lane_by_element(exponentials, left, wanted, lane, stride);
  return std::memcmp(found, wanted, sizeof found) == 0;
}

void test(const char* name, bool (*equal)(Random&, std::size_t)) {
  Random random;
  std::uint32_t unlike = 0;
  for (std::size_t i = 0; i < cases; ++i) {
    fill(random);
    unlike += equal(random, random.below(longest)) ? 0 : 1;
  }
  print("int8 ");
  print(name);
  print(" cases ");
  print(cases);
  print(" vectorised ");
  print(cases);
  print(" unlike ");
  print(unlike);
  print("\n");
}

}  // namespace

int main() {
  test("dot_products", dots);
  test("copy_rows", copy);
  test("sum_of", total);
  test("window_products", windows<false>);
  test("shared_window_products", windows<true>);
  test("requantize_all", scale);
  test("add_all", add);
  test("requantize_by_one", scale_by_one);
  test("softmax_lane", soften);
  return 0;
}
