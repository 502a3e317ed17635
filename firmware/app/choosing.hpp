// Chooses an index by numbers: the largest, or one drawn by weights. The same bits on every machine; the
// host's half is sdk/ethosu_sdk/program/feeds.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/sequence.hpp"
#include "kernels/support/kernel_api.hpp"

namespace ethosu_sdk::app {

// Consecutive numbers of a tensor.
class Row {
 public:
  Row(const Tensor& tensor, std::size_t first, std::size_t count)
      : tensor_(tensor), first_(first), count_(count) {}

  static bool can_read(ScalarType type);
  std::size_t count() const { return count_; }
  float at(std::size_t index) const;

 private:
  const Tensor& tensor_;
  std::size_t first_;
  std::size_t count_;
};

// The index of the largest number, of equal ones the lowest. False where one is not a number.
bool choose_greatest(const Row& row, std::uint32_t& index);

// The index that `draw` chooses: number i has the weight 2^((x[i] - max) * factor / 65536), cut to 32 bits
// behind the point; only the `top_k` largest (0: all; of equal ones those with the lowest indices) have one.
// False where a number is none, or the largest is infinite.
bool choose_drawn(const Row& row, const Feed& feed, std::uint64_t draw, std::uint32_t& index);

// 64 random bits: number `draw` of SplitMix64's sequence for `seed` (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t draw);

}  // namespace ethosu_sdk::app
