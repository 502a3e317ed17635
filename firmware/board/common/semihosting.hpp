// Arm semihosting's one instruction (specification 3.0, the T32 form).
#pragma once

#include <cstdint>

namespace ethosu_sdk::board {

// `argument` is a word or the address of a block of words, as `operation` has it; returns the host's answer.
inline std::uint32_t semihosting_call(std::uint32_t operation, std::uintptr_t argument) {
  register std::uint32_t r0 asm("r0") = operation;
  register std::uintptr_t r1 asm("r1") = argument;
  asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

}  // namespace ethosu_sdk::board
