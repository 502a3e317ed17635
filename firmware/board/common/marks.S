// The marks of hal/marks.hpp. In assembly: a compiler may merge functions that are the same.
  .syntax unified
  .thumb
  .irp name, operator, kernel, runtime, copy_in, driver_start, wait, driver_stop, copy_out, report, interrupt, clock, back, end
  .section .text.ethosu_mark_\name, "ax", %progbits
  .global ethosu_mark_\name
  .type ethosu_mark_\name, %function
  .thumb_func
ethosu_mark_\name:
  bx lr
  .size ethosu_mark_\name, . - ethosu_mark_\name
  .endr
