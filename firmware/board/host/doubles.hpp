// What tests on this machine put in the place of hardware.
#pragma once

#include <cstdint>
#include <string>

namespace ethosu_sdk::host {

// Stands for the NPU's registers.
class NpuDouble {
 public:
  virtual std::uint32_t read(std::uint32_t offset) = 0;
  virtual void write(std::uint32_t offset, std::uint32_t value) = 0;

 protected:
  ~NpuDouble() = default;
};

// Without one, reads give 0: no NPU.
void set_npu(NpuDouble* npu);

// Raises the NPU's interrupt line: the handler runs when the firmware next sleeps.
void raise_npu_interrupt();

// What hal::command_line() gives; empty: there is none. Files are those of this machine.
void set_command_line(const std::string& text);

// Everything written to the UART since the last call.
std::string take_uart();

}  // namespace ethosu_sdk::host
