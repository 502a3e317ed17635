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
constexpr std::uint32_t state_rx_full = 1U << 1;
constexpr std::uint32_t ctrl_tx_enable = 1U << 0;
constexpr std::uint32_t ctrl_rx_enable = 1U << 1;
constexpr std::uint32_t clock_hz = 25000000;  // of the peripherals, as QEMU's machines of both boards have it
constexpr std::uint32_t bauddiv_minimum = 16;  // the fastest the divider allows

}  // namespace

void uart_open() {
  board::register_at(bauddiv) = bauddiv_minimum;  // before TX is enabled
  board::register_at(ctrl) = ctrl_tx_enable;
}

void uart_open_both(std::uint32_t baud) {
  const std::uint32_t divider = (clock_hz + baud / 2) / baud;
  board::register_at(ctrl) = 0;
  board::register_at(bauddiv) = divider < bauddiv_minimum ? bauddiv_minimum : divider;
  board::register_at(ctrl) = ctrl_tx_enable | ctrl_rx_enable;
}

bool uart_read(char& character) {
  if ((board::register_at(state) & state_rx_full) == 0) {
    return false;
  }
  character = static_cast<char>(board::register_at(data));
  return true;
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
