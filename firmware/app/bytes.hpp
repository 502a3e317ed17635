// A view of constant bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ethosu_sdk::app {

struct Bytes {
  const std::uint8_t* data;
  std::size_t size;
};

}  // namespace ethosu_sdk::app
