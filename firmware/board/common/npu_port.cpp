// The Ethos-U's Secure register window and interrupt. Data and instruction caches stay off, as they are
// after reset, so a barrier is all that the memory shared with the NPU needs.
#include "hal/npu_port.hpp"

#include "board.hpp"
#include "hal/marks.hpp"
#include "memory_map.hpp"
#include "system_control.hpp"

namespace ethosu_sdk {
namespace {

hal::InterruptHandler npu_handler = nullptr;
void* npu_handler_context = nullptr;

constexpr std::uintptr_t enable_word = board::nvic_iser + board::npu_irq / 32 * 4;
constexpr std::uint32_t enable_bit = 1U << (board::npu_irq % 32);

}  // namespace

void board::npu_interrupt() {
  hal::mark_interrupt();
  if (npu_handler != nullptr) {
    npu_handler(npu_handler_context);
  }
  // The handler's write to CMD must reach the NPU before the level is looked at again.
  asm volatile("dsb" ::: "memory");
  hal::mark_back();
}

std::uint32_t hal::npu_read(std::uint32_t offset) {
  return board::register_at(board::npu_base + offset);
}

void hal::npu_write(std::uint32_t offset, std::uint32_t value) {
  board::register_at(board::npu_base + offset) = value;
}

void hal::npu_interrupt_enable(InterruptHandler handler, void* context) {
  npu_handler = handler;
  npu_handler_context = context;
  asm volatile("dsb" ::: "memory");
  board::register_at(enable_word) = enable_bit;
}

void hal::npu_memory_barrier() {
  asm volatile("dsb" ::: "memory");
}

}  // namespace ethosu_sdk
