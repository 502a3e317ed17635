// Corstone-300 (SSE-300) as QEMU's mps3-an547 and Arm's FVP both have it, through the Secure aliases.
// Sources: Arm AN552/AN547 memory maps. The memories themselves are in linker.ld.
#pragma once

#include <cstdint>

namespace ethosu_sdk::board {

constexpr char name[] = "corstone-300";
constexpr std::uintptr_t uart0_base = 0x59303000;  // CMSDK APB UART
constexpr std::uintptr_t npu_base = 0x58102000;
constexpr unsigned npu_irq = 56;
constexpr unsigned irq_count = 128;
constexpr std::uint32_t core_clock_hz = 32'000'000;  // MAINCLK of AN547

}  // namespace ethosu_sdk::board
