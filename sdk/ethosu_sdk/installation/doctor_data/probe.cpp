// What `ethosu-sdk doctor` compiles, links and boots: C++17 for a Cortex-M55 with the hard-float ABI, which
// ends itself by semihosting with exit status 42 when its arithmetic is right.
#include <array>
#include <cstdint>
#include <numeric>

namespace {

// Operations and the reason for an end, of Arm's "Semihosting for AArch32 and AArch64".
constexpr int sys_write0 = 0x04;
constexpr int sys_exit_extended = 0x20;
constexpr std::uint32_t application_exit = 0x20026;

constexpr std::uint32_t right = 42;
constexpr std::uint32_t wrong = 1;
constexpr std::uint32_t fault = 2;

void semihosting(int operation, const void* argument) {
  register int r0 asm("r0") = operation;
  register const void* r1 asm("r1") = argument;
  asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

[[noreturn]] void finish(std::uint32_t status) {
  const std::array<std::uint32_t, 2> block = {application_exit, status};
  for (;;) semihosting(sys_exit_extended, block.data());
}

// Not inlined: argument and result pass in the FPU's registers, which is what the hard-float ABI means.
__attribute__((noinline)) float scaled(float value) {
  asm volatile("" : "+t"(value));  // or the compiler would compute the sum itself
  return value * 1.5F;
}

}  // namespace

extern "C" {
extern std::uint32_t doctor_stack_top;

[[noreturn]] void Reset_Handler() {
  // CPACR (Armv8-M Architecture Reference Manual): full access to CP10 and CP11, which are the FPU and MVE.
  *reinterpret_cast<volatile std::uint32_t*>(0xE000ED88U) |= 0xFU << 20;
  asm volatile("dsb\nisb" ::: "memory");
  std::array<float, 4> values = {1.0F, 2.0F, 3.0F, 4.0F};
  for (float& value : values) value = scaled(value);
  const bool good = std::accumulate(values.begin(), values.end(), 0.0F) == 15.0F;
  semihosting(sys_write0, good ? "doctor: the sum is 15\n" : "doctor: the sum is wrong\n");
  finish(good ? right : wrong);
}

[[noreturn]] void HardFault_Handler() {
  finish(fault);
}

// Stack, reset, NMI, hard fault: nothing else can happen.
__attribute__((section(".vectors"), used)) const void* const vectors[] = {
    &doctor_stack_top, reinterpret_cast<const void*>(&Reset_Handler),
    reinterpret_cast<const void*>(&HardFault_Handler), reinterpret_cast<const void*>(&HardFault_Handler)};
}
