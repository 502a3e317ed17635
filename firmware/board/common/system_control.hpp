// Registers that every Armv8-M core has, and how any register is reached.
// Source: Armv8-M Architecture Reference Manual, system control space.
#pragma once

#include <cstdint>

namespace ethosu_sdk::board {

constexpr std::uintptr_t syst_csr = 0xE000E010;
constexpr std::uintptr_t syst_rvr = 0xE000E014;
constexpr std::uintptr_t syst_cvr = 0xE000E018;
constexpr std::uintptr_t nvic_iser = 0xE000E100;
constexpr std::uintptr_t scb_vtor = 0xE000ED08;
constexpr std::uintptr_t scb_ccr = 0xE000ED14;
constexpr std::uintptr_t scb_shcsr = 0xE000ED24;
constexpr std::uintptr_t scb_cfsr = 0xE000ED28;
constexpr std::uintptr_t scb_hfsr = 0xE000ED2C;
constexpr std::uintptr_t scb_mmfar = 0xE000ED34;
constexpr std::uintptr_t scb_bfar = 0xE000ED38;
constexpr std::uintptr_t scb_cpacr = 0xE000ED88;
constexpr std::uintptr_t scb_sfsr = 0xE000EDE4;
constexpr std::uintptr_t scb_sfar = 0xE000EDE8;

inline volatile std::uint32_t& register_at(std::uintptr_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}

}  // namespace ethosu_sdk::board
