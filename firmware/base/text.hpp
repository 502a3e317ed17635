// Text, piece by piece into any sink: numbers without printf, and so without its heap and its size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ethosu_sdk {

class Sink {
 public:
  virtual void put(char character) = 0;

 protected:
  ~Sink() = default;
};

struct Hex {
  std::uint32_t value;  // written as 0x and eight digits
};

void write(Sink& sink, const char* text);
void write(Sink& sink, Hex number);
void write_decimal(Sink& sink, std::uint64_t number);
void write_hex_digits(Sink& sink, std::uint32_t value, unsigned digits);

template <typename Integer, typename = std::enable_if_t<std::is_integral_v<Integer>>>
void write(Sink& sink, Integer number) {
  static_assert(!std::is_same_v<Integer, char>, "write a character with put()");
  const auto bits = static_cast<std::uint64_t>(number);
  const bool negative = number < Integer{0};
  if (negative) {
    sink.put('-');
  }
  write_decimal(sink, negative ? std::uint64_t{0} - bits : bits);
}

template <typename... Pieces>
void write_all(Sink& sink, const Pieces&... pieces) {
  (write(sink, pieces), ...);
}

// Text in a buffer of its own, cut at its end.
template <std::size_t Size>
class Text final : public Sink {
 public:
  void put(char character) override {
    if (used_ + 1 < Size) {
      buffer_[used_++] = character;
      buffer_[used_] = '\0';
    }
  }
  const char* c_str() const { return buffer_; }

 private:
  char buffer_[Size] = {};
  std::size_t used_ = 0;
};

}  // namespace ethosu_sdk
