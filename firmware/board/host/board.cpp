// The hal on this machine: a UART that tests can read, a clock that moves by one tick per sleep, an NPU
// double.
#include "hal/board.hpp"

#include <cstdlib>
#include <utility>

#include "board/host/doubles.hpp"
#include "hal/clock.hpp"
#include "hal/fault.hpp"
#include "hal/memory.hpp"
#include "hal/npu_port.hpp"
#include "hal/uart.hpp"

namespace ethosu_sdk {
namespace {

std::string uart;
std::uint32_t now_ms = 0;
host::NpuDouble* npu = nullptr;
hal::InterruptHandler npu_handler = nullptr;
void* npu_context = nullptr;
bool npu_pending = false;

}  // namespace

void host::set_npu(NpuDouble* double_) {
  npu = double_;
  npu_pending = false;
}

void host::raise_npu_interrupt() {
  npu_pending = true;
}

std::string host::take_uart() {
  return std::exchange(uart, {});
}

const char* hal::board_name() {
  return "host";
}

void hal::exit(int code) {
  std::exit(code);
}

void hal::uart_open() {}

void hal::uart_open_both(std::uint32_t) {}

bool hal::uart_read(char&) {
  return false;
}

void hal::uart_write(char character) {
  uart.push_back(character);
}

void hal::uart_drain() {}

void hal::clock_open() {}

std::uint32_t hal::clock_ms() {
  return now_ms;
}

std::uint64_t hal::clock_cycles() {
  return now_ms;
}

void hal::sleep_unless(const volatile bool& done) {
  if (!done) {
    now_ms += clock_tick_ms;
    if (npu_pending && npu_handler != nullptr) {
      npu_pending = false;
      npu_handler(npu_context);
    }
  }
}

std::uint32_t hal::npu_read(std::uint32_t offset) {
  return npu == nullptr ? 0 : npu->read(offset);
}

void hal::npu_write(std::uint32_t offset, std::uint32_t value) {
  if (npu != nullptr) {
    npu->write(offset, value);
  }
}

void hal::npu_interrupt_enable(InterruptHandler handler, void* context) {
  npu_handler = handler;
  npu_context = context;
}

void hal::npu_memory_barrier() {}

void hal::set_fault_reporter(FaultReporter) {}

const std::uint8_t* hal::code_begin() {
  return nullptr;
}

std::size_t hal::code_size() {
  return 0;
}

std::size_t hal::stack_used() {
  return 0;
}

std::size_t hal::stack_size() {
  return 0;
}

}  // namespace ethosu_sdk
