#include "kernels/error_text.hpp"

namespace ethosu_sdk {

void ErrorText::clear() {
  used_ = 0;
  buffer_[0] = '\0';
}

ErrorText& ErrorText::operator<<(const char* text) {
  for (; text != nullptr && *text != '\0'; ++text) {
    put(*text);
  }
  return *this;
}

void ErrorText::put(char character) {
  if (used_ + 1 < capacity) {
    buffer_[used_++] = character >= ' ' && character <= '~' ? character : '?';
    buffer_[used_] = '\0';
  }
}

ErrorText& ErrorText::decimal(std::uint64_t number) {
  char digits[20];  // of 2^64 - 1
  std::size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (count != 0) {
    put(digits[--count]);
  }
  return *this;
}

}  // namespace ethosu_sdk
