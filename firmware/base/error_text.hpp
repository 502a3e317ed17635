// Why something failed, in words.
#pragma once

#include <cstddef>

#include "base/text.hpp"

namespace ethosu_sdk {

// Printable ASCII only, cut at its end: text out of a damaged program cannot harm a log.
class ErrorText final : public Sink {
 public:
  static constexpr std::size_t capacity = 192;

  void clear() { text_ = {}; }
  bool empty() const { return *c_str() == '\0'; }
  const char* c_str() const { return text_.c_str(); }

  void put(char character) override { text_.put(character >= ' ' && character <= '~' ? character : '?'); }

  // Text, of which nullptr has none, or an integer.
  ErrorText& operator<<(const char* text) {
    write(*this, text == nullptr ? "" : text);
    return *this;
  }
  template <typename Integer>
  ErrorText& operator<<(Integer number) {
    write(*this, number);
    return *this;
  }

 private:
  Text<capacity> text_;
};

}  // namespace ethosu_sdk
