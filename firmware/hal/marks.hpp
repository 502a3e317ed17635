// Marks: functions that do nothing. A simulator that counts instructions sees when one is called and begins
// another part of its counts. The SDK's protocol module says what begins at each, and finds them in the ELF.
// Interrupts begin with marks of the board.
#pragma once

namespace ethosu_sdk::hal {

void mark_operator() __asm__("ethosu_mark_operator");
void mark_kernel() __asm__("ethosu_mark_kernel");
void mark_runtime() __asm__("ethosu_mark_runtime");
void mark_copy_in() __asm__("ethosu_mark_copy_in");
void mark_driver_start() __asm__("ethosu_mark_driver_start");
void mark_wait() __asm__("ethosu_mark_wait");
void mark_driver_stop() __asm__("ethosu_mark_driver_stop");
void mark_copy_out() __asm__("ethosu_mark_copy_out");
void mark_report() __asm__("ethosu_mark_report");
void mark_back() __asm__("ethosu_mark_back");
void mark_end() __asm__("ethosu_mark_end");

}  // namespace ethosu_sdk::hal
