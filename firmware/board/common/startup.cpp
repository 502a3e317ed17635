// Reset: from the vector table to firmware_main(). Nothing here may use the FPU before CPACR enables it.
#include <cstddef>
#include <cstdint>

#include "board.hpp"
#include "hal/board.hpp"
#include "hal/entry.hpp"
#include "memory_map.hpp"
#include "system_control.hpp"

using ethosu_sdk::board::register_at;

extern "C" {
// Defined by linker.ld.
extern std::uint32_t board_stack_top[], board_stack_limit[];
extern std::uint32_t board_data_begin[], board_data_end[], board_data_load[];
extern std::uint32_t board_bss_begin[], board_bss_end[];
extern void (*board_init_array_begin[])();
extern void (*board_init_array_end[])();

void Reset_Handler();
[[noreturn]] void board_start();

// The compiler's target for a call to a pure virtual function; the library's own drags in the unwinder.
[[noreturn]] void __cxa_pure_virtual();
}

namespace {

using ethosu_sdk::board::clock_entry;
using ethosu_sdk::board::fault_entry;
using ethosu_sdk::board::irq_count;
using ethosu_sdk::board::npu_entry;
using ethosu_sdk::board::npu_irq;

using Handler = void (*)();
constexpr std::size_t system_exceptions = 14;  // Reset to PendSV and SysTick, after the initial stack pointer
constexpr std::size_t systick_slot = 14;

struct VectorTable {
  std::uint32_t* initial_stack;
  Handler handlers[system_exceptions + 1 + irq_count];
};

constexpr VectorTable make_vectors() {
  VectorTable table{board_stack_top, {}};
  for (Handler& handler : table.handlers) {
    handler = fault_entry;  // an interrupt that nothing enabled is a fault too
  }
  table.handlers[0] = Reset_Handler;
  table.handlers[systick_slot] = clock_entry;
  table.handlers[systick_slot + 1 + npu_irq] = npu_entry;
  return table;
}

// VTOR keeps no more than the bits above the table's size, rounded up to a power of two.
constexpr std::size_t vector_alignment() {
  std::size_t alignment = 1;
  while (alignment < sizeof(VectorTable)) {
    alignment *= 2;
  }
  return alignment;
}
__attribute__((section(".vectors"),
               used)) alignas(vector_alignment()) constexpr VectorTable vectors = make_vectors();

void enable_processor_features() {
  using namespace ethosu_sdk::board;
  register_at(scb_vtor) = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&vectors));
  register_at(scb_cpacr) = register_at(scb_cpacr) | (0xFU << 20);  // CP10, CP11: FPU
  register_at(scb_ccr) =
      register_at(scb_ccr) | (1U << 18) | (1U << 19);  // branch prediction, low-overhead loops
  register_at(scb_shcsr) = register_at(scb_shcsr) | (7U << 16) | (1U << 19);  // all configurable faults
  asm volatile("dsb\n isb" ::: "memory");
  // LTPSIZE = 4: no tail predication outside a low-overhead loop (Armv8.1-M Architecture Reference Manual,
  // FPSCR).
  asm volatile("vmsr fpscr, %0" ::"r"(0x00040000U));
}

void initialise_memory() {
  const std::uint32_t* source = board_data_load;
  for (std::uint32_t* word = board_data_begin; word < board_data_end; ++word) {
    *word = *source++;
  }
  for (std::uint32_t* word = board_bss_begin; word < board_bss_end; ++word) {
    *word = 0;
  }
}

}  // namespace

extern "C" {

// MSPLIM before anything is pushed, then the stack is painted so that its depth can be read at the end.
__attribute__((naked)) void Reset_Handler() {
  asm volatile(
      "ldr r0, =board_stack_limit\n"
      "ldr r1, =board_stack_top\n"
      "msr msplim, r0\n"
      "msr msp, r1\n"
      "ldr r2, =0xA5A5A5A5\n"
      "1: str r2, [r0], #4\n"
      "cmp r0, r1\n"
      "blo 1b\n"
      "b board_start\n");
}

[[noreturn]] __attribute__((used)) void board_start() {
  enable_processor_features();
  initialise_memory();
  for (auto constructor = board_init_array_begin; constructor < board_init_array_end; ++constructor) {
    (*constructor)();
  }
  ethosu_sdk::hal::exit(ethosu_sdk::hal::firmware_main());
}

[[noreturn]] void __cxa_pure_virtual() {
  asm volatile("udf #0");
  __builtin_unreachable();
}

}  // extern "C"
