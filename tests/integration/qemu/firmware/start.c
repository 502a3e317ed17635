/* Vector table and reset. Every fault lands in `fault`, which a program provides. */
#include "board.h"

extern uint32_t stack_top;
void reset(void);
void fault(void);
void npu_interrupt(void);
int main(void);

typedef void (*vector)(void);

__attribute__((section(".vectors"), used)) static const vector vectors[16 + NPU_IRQ + 1] = {
    (vector)&stack_top,
    reset,
    [2 ... 15] = fault,
    [16 ... 16 + NPU_IRQ - 1] = fault,
    [16 + NPU_IRQ] = npu_interrupt,
};

void reset(void) {
  *(volatile uint32_t *)0xE000ED08u = (uint32_t)vectors; /* VTOR */
  main();
  for (;;) {
  }
}
