// The exception entries that the vector table names.
#pragma once

namespace ethosu_sdk::board {

void fault_entry();
void clock_interrupt();
void npu_interrupt();

// True once hal::exit() has begun: what a simulator without semihosting does with its breakpoint is no fault.
bool ending();

}  // namespace ethosu_sdk::board
