/* Runs every access form of forms.S twice, on plain memory and on the NPU's registers, and compares what the
   program sees: loaded values, base registers written back, flags, and the bytes stored. The NPU of this test
   is a block of registers that keep what is written. The processor's own execution on memory is the oracle. */
#include "board.h"

#define BLOCK_WORDS 32
#define RESULT_WORDS 16

typedef void (*form)(uint32_t base, uint32_t *results);
extern const form forms[];
extern const uint32_t form_count;

static uint32_t memory[BLOCK_WORDS] __attribute__((aligned(128)));

void fault(void) {
  print("fault\n");
  leave(100);
}
void npu_interrupt(void) { fault(); }

static void fill(uint32_t base) {
  for (uint32_t i = 0; i < BLOCK_WORDS; i++) REG(base + 4 * i) = 0x81C3A5E7u * (i + 1);
}

/* Base registers are compared by their distance from the block's start. */
static uint32_t relative(uint32_t value, uint32_t base) { return value - base < 0x400 ? value - base : value; }

static int differs(uint32_t index, uint32_t device) {
  const uint32_t plain = (uint32_t)memory;
  uint32_t expected[RESULT_WORDS] = {0}, seen[RESULT_WORDS] = {0};
  int bad = 0;
  fill(plain);
  fill(device);
  forms[index](plain, expected);
  forms[index](device, seen);
  for (int i = 0; i < RESULT_WORDS; i++) bad |= relative(expected[i], plain) != relative(seen[i], device);
  for (uint32_t i = 0; i < BLOCK_WORDS; i++) bad |= memory[i] != REG(device + 4 * i);
  return bad;
}

int main(void) {
  uint32_t bad = 0;
  uart_start();
  for (uint32_t i = 0; i < form_count; i++) {
    for (uint32_t alias = 0; alias < 2; alias++) {
      if (!differs(i, alias ? NPU - 0x10000000u : NPU)) continue;
      bad++;
      print("form ");
      print_hex(i);
      print(alias ? " differs at the Non-secure alias\n" : " differs\n");
    }
  }
  print("forms ");
  print_hex(form_count);
  put('\n');
  leave(bad);
}
