#include "app/choosing.hpp"

#include <cmath>
#include <cstring>

namespace ethosu_sdk::app {
namespace {

constexpr std::uint32_t fraction_bits = 16;
constexpr float smallest = -32.0F * 65536.0F;  // a weight below 2^-32 is none
// 2^(32 - 2^(bit - 16)), rounded down, for each bit of a fraction.
constexpr std::uint64_t powers[fraction_bits] = {
    4294921870, 4294876444, 4294785595, 4294603902, 4294240539, 4293513906, 4292061009, 4289156690,
    4283353945, 4271771996, 4248701964, 4202935003, 4112874773, 3938502375, 3611622602, 3037000499};

// The largest numbers so far, the first of them the largest.
class Largest {
 public:
  explicit Largest(std::uint32_t limit) : limit_(limit) {}

  void add(float number) {
    if (used_ == limit_ && !(number > numbers_[used_ - 1])) {
      return;
    }
    std::uint32_t place = used_ < limit_ ? used_++ : used_ - 1;
    for (; place > 0 && number > numbers_[place - 1]; --place) {
      numbers_[place] = numbers_[place - 1];
    }
    numbers_[place] = number;
  }
  float least() const { return numbers_[used_ - 1]; }
  // How many are equal to the least.
  std::uint32_t of_least() const {
    std::uint32_t count = 1;
    while (count < used_ && numbers_[used_ - 1 - count] == least()) {
      ++count;
    }
    return count;
  }

 private:
  float numbers_[protocol::feed_max_top_k];
  std::uint32_t limit_;
  std::uint32_t used_ = 0;
};

// Calls `visit(index, weight)` for each number that has a weight, until it returns true.
template <typename Visit>
void for_each_weight(const Row& row, float greatest, float factor, const Largest* top, Visit visit) {
  std::uint32_t equal = top == nullptr ? 0 : top->of_least();
  for (std::size_t i = 0; i < row.count(); ++i) {
    const float number = row.at(i);
    if (top != nullptr && number <= top->least()) {
      if (number < top->least() || equal == 0) {
        continue;
      }
      --equal;
    }
    const float exponent = (number - greatest) * factor;
    if (exponent <= smallest) {
      continue;
    }
    const auto steps = static_cast<std::uint32_t>(-exponent);
    std::uint64_t weight = 0xFFFFFFFF;
    for (std::uint32_t bit = 0; bit < fraction_bits; ++bit) {
      if ((steps >> bit & 1) != 0) {
        weight = weight * powers[bit] >> 32;
      }
    }
    if (visit(static_cast<std::uint32_t>(i), weight >> (steps >> fraction_bits))) {
      return;
    }
  }
}

}  // namespace

bool Row::can_read(ScalarType type) {
  return type == ScalarType::uint8 || type == ScalarType::int8 || type == ScalarType::int16 ||
         type == ScalarType::float32;
}

float Row::at(std::size_t index) const {
  const std::size_t place = first_ + index;
  switch (tensor_.dtype) {
    case ScalarType::uint8:
      return tensor_.as<std::uint8_t>()[place];
    case ScalarType::int8:
      return tensor_.as<std::int8_t>()[place];
    case ScalarType::int16:
      return tensor_.as<std::int16_t>()[place];
    default:
      return tensor_.as<float>()[place];
  }
}

bool choose_greatest(const Row& row, std::uint32_t& index) {
  float greatest = 0.0F;
  for (std::size_t i = 0; i < row.count(); ++i) {
    const float number = row.at(i);
    if (number != number) {
      return false;
    }
    if (i == 0 || number > greatest) {
      greatest = number;
      index = static_cast<std::uint32_t>(i);
    }
  }
  return true;
}

bool choose_drawn(const Row& row, const Feed& feed, std::uint64_t draw, std::uint32_t& index) {
  if (!choose_greatest(row, index) || !std::isfinite(row.at(index))) {
    return false;
  }
  const float greatest = row.at(index);
  Largest largest(feed.top_k);
  for (std::size_t i = 0; feed.top_k != 0 && i < row.count(); ++i) {
    largest.add(row.at(i));
  }
  const Largest* const top = feed.top_k == 0 ? nullptr : &largest;
  std::uint64_t total = 0;
  for_each_weight(row, greatest, feed.factor, top, [&](std::uint32_t, std::uint64_t weight) {
    total += weight;
    return false;
  });
  std::uint64_t left = random_bits(feed.seed, draw) % total;
  for_each_weight(row, greatest, feed.factor, top, [&](std::uint32_t candidate, std::uint64_t weight) {
    index = candidate;
    const bool found = left < weight;
    left -= weight;
    return found;
  });
  return true;
}

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t draw) {
  std::uint64_t bits = seed + (draw + 1) * 0x9E3779B97F4A7C15U;
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ bits >> 27) * 0x94D049BB133111EBU;
  return bits ^ bits >> 31;
}

}  // namespace ethosu_sdk::app
