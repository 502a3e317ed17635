/* The least that a test program needs of the board. Register layouts: Arm Cortex-M System Design Kit (UART),
   Armv8-M Architecture Reference Manual (NVIC, SCB), Arm semihosting specification (exit). */
#pragma once
#include <stdint.h>

#define REG(address) (*(volatile uint32_t *)(address))
#ifdef CORSTONE_320
#define UART0 0x58203000u
#define NPU 0x50004000u
#define NPU_IRQ 16
#define BRAM_TO_NONSECURE 0x11000000u
#else
#define UART0 0x59303000u
#define NPU 0x58102000u
#define NPU_IRQ 56
#define BRAM_TO_NONSECURE 0x10000000u
#endif

static inline void uart_start(void) {
  REG(UART0 + 0x10) = 16; /* BAUDDIV */
  REG(UART0 + 0x08) = 1;  /* CTRL.TXEN */
}

static inline void uart_wait(void) {
  while (REG(UART0 + 0x04) & 1) {
  }
}

static inline void put(char c) {
  uart_wait();
  REG(UART0) = (uint8_t)c;
}

static inline void print(const char *text) {
  while (*text) put(*text++);
}

static inline void print_hex(uint32_t value) {
  for (int shift = 28; shift >= 0; shift -= 4) put("0123456789abcdef"[value >> shift & 15]);
}

__attribute__((noreturn)) static inline void leave(uint32_t code) {
  uint32_t block[2] = {0x20026u, code}; /* ADP_Stopped_ApplicationExit and its subcode */
  uart_wait();                          /* the last byte must have left the transmitter */
  register uint32_t operation __asm("r0") = 0x20; /* SYS_EXIT_EXTENDED */
  register uint32_t *argument __asm("r1") = block;
  __asm volatile("bkpt 0xAB" : "+r"(operation) : "r"(argument) : "memory");
  for (;;) {
  }
}
