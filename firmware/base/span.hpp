// A view of consecutive elements; C++17 has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ethosu_sdk {

template <typename T>
class Span {
 public:
  constexpr Span() = default;
  constexpr Span(T* data, std::size_t size) : data_(data), size_(size) {}

  // Span<T> → Span<const T>.
  template <typename Other, typename = std::enable_if_t<std::is_convertible_v<Other (*)[], T (*)[]>>>
  constexpr Span(Span<Other> other) : data_(other.data()), size_(other.size()) {}

  constexpr T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](std::size_t index) const { return data_[index]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

using Bytes = Span<const std::uint8_t>;

}  // namespace ethosu_sdk
