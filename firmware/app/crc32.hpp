// CRC-32 of IEEE 802.3 (reflected, polynomial 0xEDB88320), as zlib computes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ethosu_sdk::app {

class Crc32 {
 public:
  void add(std::uint8_t byte);
  void add(const std::uint8_t* data, std::size_t size);
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = UINT32_MAX;
};

std::uint32_t crc32(const std::uint8_t* data, std::size_t size);

}  // namespace ethosu_sdk::app
