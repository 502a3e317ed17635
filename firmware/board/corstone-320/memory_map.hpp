// Corstone-320 (SSE-320 on MPS4) as Arm's FVP has it, through the Secure aliases.
// Sources: Zephyr's devicetree of mps4_corstone320_fvp, Trusted Firmware-M's corstone320 target. The memories
// themselves are in linker.ld.
#pragma once

#include <cstdint>

namespace ethosu_sdk::board {

constexpr char name[] = "corstone-320";
constexpr std::uintptr_t uart0_base = 0x58203000;  // CMSDK APB UART
constexpr std::uintptr_t npu_base = 0x50004000;
constexpr unsigned npu_irq = 16;
constexpr unsigned irq_count = 480;
constexpr std::uint32_t core_clock_hz = 25'000'000;  // the devicetree's; it bounds waiting, no more

}  // namespace ethosu_sdk::board
