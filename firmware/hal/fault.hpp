// What a processor exception leaves behind, and who reports it.
#pragma once

#include <cstdint>

namespace ethosu_sdk::hal {

struct Fault {
  const char* cause;  // exception and reason in words
  std::uint32_t pc;   // 0 when the processor could not stack a frame (stack overflow)
  std::uint32_t lr;
  std::uint32_t sp;  // before the exception
  std::uint32_t xpsr;
  std::uint32_t cfsr;
  std::uint32_t hfsr;
  std::uint32_t address;  // the faulting data address; 0 when the processor does not know it
};

using FaultReporter = void (*)(const Fault&);

// `reporter` runs once, on a stack of its own, and the run ends after it. Without one a fault ends silently
// with exit_code_fault.
void set_fault_reporter(FaultReporter reporter);

constexpr int exit_code_fault = 2;

}  // namespace ethosu_sdk::hal
