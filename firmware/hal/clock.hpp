// Coarse time, for bounds on waiting only. It is not a measurement: a functional simulator's time means
// nothing.
#pragma once

#include <cstdint>

namespace ethosu_sdk::hal {

void clock_open();

// Milliseconds since clock_open(), in steps of clock_tick_ms; wraps after 49 days.
std::uint32_t clock_ms();
constexpr std::uint32_t clock_tick_ms = 10;

// Cycles of the processor's clock since clock_open(). On a simulator that gives every instruction the same
// time they count instructions.
std::uint64_t clock_cycles();

// Sleeps until any interrupt, at most one clock tick. Returns at once when `done` is already set: the test
// and the sleep cannot be parted by an interrupt.
void sleep_unless(const volatile bool& done);

}  // namespace ethosu_sdk::hal
