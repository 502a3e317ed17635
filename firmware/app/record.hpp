// How a record of the firmware-host protocol is declared. The records themselves, and the protocol's
// constants, are in app/protocol.hpp, which the SDK generates from sdk/ethosu_sdk/program/protocol.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ethosu_sdk::app::protocol {

enum class Kind : std::uint8_t { number, text, list };

struct Field {
  const char* name;
  Kind kind;
};

template <std::size_t N>
struct Record {
  const char* name;
  Field fields[N];  // in the order in which they are written
};

}  // namespace ethosu_sdk::app::protocol
