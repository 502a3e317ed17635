#include "base/text.hpp"

namespace ethosu_sdk {

void write(Sink& sink, const char* text) {
  for (; *text != '\0'; ++text) {
    sink.put(*text);
  }
}

void write_decimal(Sink& sink, std::uint64_t number) {
  char digits[20];  // 2^64 has 20
  std::size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (count != 0) {
    sink.put(digits[--count]);
  }
}

void write(Sink& sink, Hex number) {
  write(sink, "0x");
  write_hex_digits(sink, number.value, 8);
}

void write_hex_digits(Sink& sink, std::uint32_t value, unsigned digits) {
  while (digits != 0) {
    --digits;
    sink.put("0123456789abcdef"[value >> (4 * digits) & 0xF]);
  }
}

}  // namespace ethosu_sdk
