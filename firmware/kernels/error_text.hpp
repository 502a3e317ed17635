// Why something failed, in words, built without printf and without a heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ethosu_sdk {

// Printable ASCII only, cut at its end: text out of a damaged program cannot harm a log.
class ErrorText {
 public:
  static constexpr std::size_t capacity = 192;

  void clear();
  bool empty() const { return used_ == 0; }
  const char* c_str() const { return buffer_; }

  ErrorText& operator<<(const char* text);

  template <typename Integer, typename = std::enable_if_t<std::is_integral_v<Integer>>>
  ErrorText& operator<<(Integer number) {
    static_assert(!std::is_same_v<Integer, char> && !std::is_same_v<Integer, bool>, "write it as text");
    if (number < Integer{0}) {
      put('-');
      return decimal(std::uint64_t{0} - static_cast<std::uint64_t>(number));
    }
    return decimal(static_cast<std::uint64_t>(number));
  }

 private:
  void put(char character);
  ErrorText& decimal(std::uint64_t number);

  char buffer_[capacity] = {};
  std::size_t used_ = 0;
};

}  // namespace ethosu_sdk
