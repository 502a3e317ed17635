// How the board reaches the Ethos-U: its register window and its interrupt line.
#pragma once

#include <cstdint>

namespace ethosu_sdk::hal {

using InterruptHandler = void (*)(void* context);

// One 32-bit access; `offset` is the register's byte offset in the NPU's window.
std::uint32_t npu_read(std::uint32_t offset);
void npu_write(std::uint32_t offset, std::uint32_t value);

// `handler` runs in interrupt context and must clear the cause at the NPU: the line is level-sensitive.
void npu_interrupt_enable(InterruptHandler handler, void* context);

// Completes all memory accesses before the NPU starts to read, and before the CPU reads what it wrote.
void npu_memory_barrier();

}  // namespace ethosu_sdk::hal
