// Facts about the board's memory that only the board knows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ethosu_sdk::hal {

// The deepest the main stack has been since reset, in bytes, and its whole size.
std::size_t stack_used();
std::size_t stack_size();

// The firmware's own code and constants, as they were linked: from board_code_begin to board_code_end.
const std::uint8_t* code_begin();
std::size_t code_size();

}  // namespace ethosu_sdk::hal
