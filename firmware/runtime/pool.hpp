// Takes memory from the caller's pool; nothing is ever given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "base/span.hpp"

namespace ethosu_sdk::runtime {

class Pool {
 public:
  explicit Pool(Span<std::uint8_t> memory) : memory_(memory) {}

  std::size_t used() const { return used_; }

  // `count` value-initialised objects; nullptr when they do not fit.
  template <typename T>
  T* take(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>, "nothing destroys what lies in a pool");
    const std::size_t start = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
    if (start > memory_.size() || count > (memory_.size() - start) / sizeof(T)) {
      return nullptr;
    }
    used_ = start + count * sizeof(T);
    auto* const objects = reinterpret_cast<T*>(memory_.data() + start);
    for (std::size_t i = 0; i < count; ++i) {
      ::new (static_cast<void*>(objects + i)) T();
    }
    return objects;
  }

 private:
  Span<std::uint8_t> memory_;
  std::size_t used_ = 0;
};

}  // namespace ethosu_sdk::runtime
