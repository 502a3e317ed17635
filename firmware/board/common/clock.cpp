// SysTick as a coarse clock (Armv8-M Architecture Reference Manual, SYST registers).
#include "hal/clock.hpp"

#include "board.hpp"
#include "hal/marks.hpp"
#include "memory_map.hpp"
#include "system_control.hpp"

namespace ethosu_sdk {
namespace {

constexpr std::uint32_t reload = board::core_clock_hz / 1000 * hal::clock_tick_ms - 1;
static_assert(reload < (1U << 24), "SYST_RVR has 24 bits");
constexpr std::uint32_t csr_enable_interrupt_core_clock = 7;

volatile std::uint32_t ticks = 0;

}  // namespace

void board::clock_interrupt() {
  hal::mark_clock();
  ticks = ticks + 1;
  hal::mark_back();
}

void hal::clock_open() {
  board::register_at(board::syst_rvr) = reload;
  board::register_at(board::syst_cvr) = 0;
  board::register_at(board::syst_csr) = csr_enable_interrupt_core_clock;
}

std::uint32_t hal::clock_ms() {
  return ticks * clock_tick_ms;
}

std::uint64_t hal::clock_cycles() {
  std::uint32_t periods = 0;
  std::uint32_t left = 0;
  do {
    periods = ticks;
    left = board::register_at(board::syst_cvr);
  } while (periods != ticks);
  return std::uint64_t{periods} * (reload + 1) + (reload - left);
}

// With PRIMASK set a pending interrupt still ends WFI, but its handler waits for cpsie: no wake-up is lost.
void hal::sleep_unless(const volatile bool& done) {
  asm volatile("cpsid i" ::: "memory");
  if (!done) {
    asm volatile("dsb\n wfi" ::: "memory");
  }
  asm volatile("cpsie i\n isb" ::: "memory");
}

}  // namespace ethosu_sdk
