// CMSDK APB UART (Arm DDI 0479, Cortex-M System Design Kit).
#include "hal/uart.hpp"

#include "memory_map.hpp"
#include "system_control.hpp"

namespace ethosu_sdk::hal {
namespace {

constexpr std::uintptr_t data = board::uart0_base + 0x00;
constexpr std::uintptr_t state = board::uart0_base + 0x04;
constexpr std::uintptr_t ctrl = board::uart0_base + 0x08;
constexpr std::uintptr_t bauddiv = board::uart0_base + 0x10;
constexpr std::uint32_t state_tx_full = 1U << 0;
constexpr std::uint32_t ctrl_tx_enable = 1U << 0;
constexpr std::uint32_t bauddiv_minimum = 16;  // the fastest the divider allows

}  // namespace

void uart_open() {
  board::register_at(bauddiv) = bauddiv_minimum;  // before TX is enabled
  board::register_at(ctrl) = ctrl_tx_enable;
}

void uart_drain() {
  while ((board::register_at(state) & state_tx_full) != 0) {
  }
}

void uart_write(char character) {
  uart_drain();  // the transmitter holds one character
  board::register_at(data) = static_cast<unsigned char>(character);
}

}  // namespace ethosu_sdk::hal
