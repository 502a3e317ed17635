// The exception entries that the vector table names.
#pragma once

namespace ethosu_sdk::board {

void fault_entry();
void clock_interrupt() __asm__("ethosu_handle_clock");
void npu_interrupt() __asm__("ethosu_handle_interrupt");
// What the vector table has of them: a mark, then the handler (marks.S).
void clock_entry() __asm__("ethosu_mark_clock");
void npu_entry() __asm__("ethosu_mark_interrupt");

// True once hal::exit() has begun: what a simulator without semihosting does with its breakpoint is no fault.
bool ending();

}  // namespace ethosu_sdk::board
