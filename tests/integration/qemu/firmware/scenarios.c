/* Firmware that behaves or misbehaves as the host demands by the words of `parameters`. */
#include <stddef.h>

#include "board.h"

enum {
  EXIT = 0,
  SPIN = 1,
  SLEEP = 2,
  HALF_LINE = 3,
  LOCKUP = 4,
  RESET_BOARD = 5,
  CHATTER = 6,
  PRINT_MANY = 7,
  WAIT_FOR_IRQ = 8,
  MEMORIES = 9,
  SUM_PAYLOAD = 10,
  EXCLUSIVE = 11,
  WRITE_REGISTER = 12,
  UNALIGNED = 13,
  STRADDLE = 14,
  MANY_READS = 15,
  READ_REGISTER = 16,
  POLL = 17,
  PRIVATE_MEMORY = 18,
  COUNT_CYCLES = 19,
};

#define BLOCK_BYTES 8192

struct parameters {
  uint32_t scenario;
  uint32_t first;
  uint32_t second;
  uint8_t payload[65536];
};

__attribute__((section(".parameters"))) volatile struct parameters parameters;
__attribute__((section(".ddr_data"))) const uint32_t loaded_by_elf[4] = {0x600df00d, 1, 2, 3};

static uint8_t in_dtcm[BLOCK_BYTES];
/* SRAM: the block lies across the seam of its two banks at 2 MiB. */
__attribute__((section(".sram"))) static uint8_t sram[4 << 20];
__attribute__((section(".bram"))) static uint8_t in_bram[BLOCK_BYTES];
__attribute__((section(".ddr_bss"))) static uint8_t in_ddr[BLOCK_BYTES];
__attribute__((section(".ddr_bss"), aligned(16))) static struct {
  uint32_t bytes, source, destination;
} job;

static volatile uint32_t interrupts;

/* Cycles of the processor's clock that a loop of two instructions takes, by SysTick. */
static uint32_t cycles_of_loop(uint32_t rounds) {
  REG(0xE000E014) = 0xFFFFFF; /* SYST_RVR, _CVR and _CSR: enabled, the processor's clock, no interrupt */
  REG(0xE000E018) = 0;
  REG(0xE000E010) = 5;
  const uint32_t before = REG(0xE000E018);
  __asm volatile("1: subs %0, #1\n bne 1b" : "+l"(rounds) : : "cc");
  return (before - REG(0xE000E018)) & 0xFFFFFF; /* it has 24 bits */
}

__attribute__((naked)) void fault(void) { __asm volatile("udf #1"); }

void npu_interrupt(void) {
  interrupts = interrupts + 1;
  REG(NPU + 0x08) = 2; /* CMD.clear_irq: the level falls before the handler returns */
  __asm volatile("dsb" ::: "memory");
}

__attribute__((noinline, noreturn)) static void spin_forever(void) {
  for (;;) __asm volatile("nop");
}

static void start_job(const void *source, void *destination, uint32_t bytes) {
  job.bytes = bytes;
  job.source = (uint32_t)source;
  job.destination = (uint32_t)destination;
  __asm volatile("dsb" ::: "memory");
  REG(NPU + 0x10) = (uint32_t)&job; /* QBASE */
  REG(NPU + 0x08) = 1;              /* CMD.run */
}

/* The NPU double adds one to every byte on its way. Returns the number of wrong bytes. */
static uint32_t through_npu(uint8_t *source, uint8_t *destination, uint32_t seed) {
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < BLOCK_BYTES; i++) {
    source[i] = (uint8_t)(i * 7 + seed);
    destination[i] = 0xEE;
  }
  start_job(source, destination, BLOCK_BYTES - 100);
  for (uint32_t i = 0; i < BLOCK_BYTES; i++) {
    uint8_t expected = i < BLOCK_BYTES - 100 ? (uint8_t)(i * 7 + seed + 1) : 0xEE;
    wrong += *(volatile uint8_t *)&destination[i] != expected;
  }
  return wrong;
}

static uint32_t memories(void) {
  uint8_t *in_sram = sram + (2 << 20) - BLOCK_BYTES / 2;
  uint8_t *in_sram_too = sram + 3 * BLOCK_BYTES;
  uint8_t *nonsecure = (uint8_t *)((uintptr_t)in_bram - BRAM_TO_NONSECURE); /* other alias, same bytes */
  uint32_t wrong = through_npu(in_sram, in_ddr, 1) + through_npu(in_ddr, in_sram, 2);
  wrong += through_npu(in_sram, in_sram_too, 3) + through_npu(in_bram, in_sram, 4);
  wrong += through_npu(in_sram_too, nonsecure, 5) + through_npu(nonsecure, in_ddr, 6);
  return wrong;
}

static uint32_t wait_for_irq(uint32_t times) {
  REG(0xE000E100u + NPU_IRQ / 32 * 4) = 1u << NPU_IRQ % 32; /* NVIC_ISER */
  for (uint32_t i = 0; i < times; i++) {
    __asm volatile("cpsid i");
    start_job(in_ddr, in_ddr, 4);
    while (interrupts == i) {
      __asm volatile("wfi\n cpsie i\n isb\n cpsid i" ::: "memory");
    }
    __asm volatile("cpsie i");
  }
  return interrupts == times ? 0 : 1;
}

static uint32_t poll(void) {
  start_job(in_ddr, in_ddr, 4);
  while (!(REG(NPU + 0x04) & 2)) {
  }
  REG(NPU + 0x08) = 2;
  return REG(NPU + 0x04) & 2 ? 1 : interrupts;
}

static uint32_t load_across(uint32_t address) {
  uint32_t low, high;
  __asm volatile("ldrd %0, %1, [%2]" : "=r"(low), "=r"(high) : "r"(address));
  return low + high;
}

static uint32_t run(void) {
  const uint32_t first = parameters.first, second = parameters.second;
  uint32_t sum = 0, scratch;
  switch (parameters.scenario) {
    case EXIT:
      return first;
    case SPIN:
      print("going round\n");
      spin_forever();
    case SLEEP:
      for (;;) __asm volatile("wfi");
    case HALF_LINE:
      print("first line\nsecond li");
      spin_forever();
    case LOCKUP:
      print("about to fault\n");
      __asm volatile("udf #0");
      return 99;
    case RESET_BOARD:
      REG(0xE000ED0Cu) = 0x05FA0004u; /* AIRCR.SYSRESETREQ */
      spin_forever();
    case CHATTER:
      for (;;) print("still here\n");
    case PRINT_MANY:
      for (uint32_t i = 0; i < first; i++) put((char)('a' + i % 26));
      return 0;
    case WAIT_FOR_IRQ:
      return wait_for_irq(first);
    case MEMORIES:
      return memories();
    case SUM_PAYLOAD:
      for (uint32_t i = 0; i < first; i++) sum = sum * 31 + parameters.payload[i];
      print_hex(sum);
      print_hex(*(const volatile uint32_t *)second);
      return loaded_by_elf[0] != 0x600df00d;
    case EXCLUSIVE:
      __asm volatile("ldrex %0, [%1]" : "=r"(scratch) : "r"(NPU));
      return scratch;
    case WRITE_REGISTER:
      REG(NPU + first) = second;
      return 0;
    case UNALIGNED:
      __asm volatile("ldr %0, [%1, #2]" : "=r"(scratch) : "r"(NPU));
      return scratch;
    case STRADDLE:
      return load_across(NPU + first);
    case MANY_READS:
      for (uint32_t i = 0; i < first; i++) sum += REG(NPU + second);
      return sum == first * REG(NPU + second) ? 0 : 1;
    case READ_REGISTER:
      print_hex(REG(NPU + first));
      print_hex(REG(NPU - 0x10000000u + first));
      return 0;
    case POLL:
      return poll();
    case COUNT_CYCLES:
      print_hex(cycles_of_loop(first));
      return 0;
    case PRIVATE_MEMORY:
      start_job(in_dtcm, in_ddr, 4);
      return 0;
    default:
      return 98;
  }
}

int main(void) {
  uart_start();
  leave(run());
}
