#include "app/crc32.hpp"

namespace ethosu_sdk::app {
namespace {

struct Table {
  std::uint32_t rows[256];
};

constexpr Table make_table() {
  Table table{};
  for (std::uint32_t row = 0; row < 256; ++row) {
    std::uint32_t value = row;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 1) != 0 ? (value >> 1) ^ 0xEDB88320U : value >> 1;
    }
    table.rows[row] = value;
  }
  return table;
}

constexpr Table table = make_table();

}  // namespace

void Crc32::add(std::uint8_t byte) {
  state_ = (state_ >> 8) ^ table.rows[(state_ ^ byte) & 0xFF];
}

void Crc32::add(const std::uint8_t* data, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    add(data[i]);
  }
}

std::uint32_t crc32(const std::uint8_t* data, std::size_t size) {
  Crc32 crc;
  crc.add(data, size);
  return crc.value();
}

}  // namespace ethosu_sdk::app
