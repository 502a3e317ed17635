// Reset, and text on the host's console by semihosting: what the test programs of this folder need of a board.
#include "start.hpp"

#include <cstdint>

#include "board/common/semihosting.hpp"

extern "C" {
extern std::uint32_t stack_top[];
void reset();
}

namespace {

using ethosu_sdk::board::semihosting_call;
constexpr std::uint32_t sys_write0 = 0x04, sys_exit_extended = 0x20, application_exit = 0x20026;

[[noreturn]] void leave(std::uint32_t code) {
  const std::uint32_t block[2] = {application_exit, code};
  semihosting_call(sys_exit_extended, reinterpret_cast<std::uintptr_t>(block));
  for (;;) {
  }
}

void fault() {
  leave(3);
}

using Vector = void (*)();
__attribute__((section(".vectors"), used)) const struct {
  std::uint32_t* stack;
  Vector handlers[15];
} vectors = {stack_top,
             {reset, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault,
              fault, fault}};

}  // namespace

void print(const char* text) {
  semihosting_call(sys_write0, reinterpret_cast<std::uintptr_t>(text));
}

void print(std::uint32_t number) {
  char digits[11];
  char* at = digits + sizeof digits;
  *--at = 0;
  do {
    *--at = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  print(at);
}

extern "C" __attribute__((naked)) void reset() {
  asm volatile(
      "ldr r0, =0xE000ED88\n"  // CPACR: CP10 and CP11, the FPU and MVE
      "ldr r1, =0x00F00000\n"
      "str r1, [r0]\n"
      "dsb\n isb\n"
      "ldr r1, =0x00040000\n"  // FPSCR.LTPSIZE = 4, as board/common/startup.cpp sets it
      "vmsr fpscr, r1\n"
      "bl main\n"
      "bl leave_with\n");
}

extern "C" [[noreturn]] void leave_with(std::uint32_t code) {
  leave(code);
}
