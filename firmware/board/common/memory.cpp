#include "hal/memory.hpp"

#include <cstdint>

extern "C" {
extern const std::uint32_t board_stack_limit[], board_stack_top[];  // linker.ld
extern const std::uint8_t board_code_begin[], board_code_end[];
}

namespace ethosu_sdk::hal {

// Reset_Handler painted the whole stack with this word.
constexpr std::uint32_t paint = 0xA5A5A5A5;

std::size_t stack_size() {
  return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(board_stack_top) -
                                  reinterpret_cast<std::uintptr_t>(board_stack_limit));
}

std::size_t stack_used() {
  const std::size_t words = stack_size() / sizeof(std::uint32_t);
  std::size_t untouched = 0;
  while (untouched < words && board_stack_limit[untouched] == paint) {
    ++untouched;
  }
  return (words - untouched) * sizeof(std::uint32_t);
}

const std::uint8_t* code_begin() {
  return board_code_begin;
}

std::size_t code_size() {
  return static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(board_code_end) -
                                  reinterpret_cast<std::uintptr_t>(board_code_begin));
}

}  // namespace ethosu_sdk::hal
