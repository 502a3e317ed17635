#pragma once

#include <cstdint>

// Marsaglia's xorshift32 ("Xorshift RNGs", 2003).
class Random {
 public:
  std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 17;
    state_ ^= state_ << 5;
    return state_;
  }
  std::uint32_t below(std::uint32_t limit) { return next() % limit; }
  std::int32_t between(std::int32_t low, std::int32_t high) {
    return low + static_cast<std::int32_t>(below(static_cast<std::uint32_t>(high - low) + 1));
  }

 private:
  std::uint32_t state_ = 2463534242;
};
