// Facts about the board's memory that only the board knows.
#pragma once

#include <cstddef>

namespace ethosu_sdk::hal {

// The deepest the main stack has been since reset, in bytes, and its whole size.
std::size_t stack_used();
std::size_t stack_size();

}  // namespace ethosu_sdk::hal
