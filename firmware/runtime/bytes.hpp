// Numbers in files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ethosu_sdk::runtime {

template <typename Number>
Number little_endian(const std::uint8_t* bytes) {
  Number number = 0;
  for (std::size_t i = sizeof(Number); i-- > 0;) {
    number = static_cast<Number>(number << 8 | bytes[i]);
  }
  return number;
}

}  // namespace ethosu_sdk::runtime
