// The ends of a run: EOT for a model started with shutdown_on_eot, then semihosting for everyone else.
#include "board.hpp"
#include "hal/board.hpp"
#include "hal/uart.hpp"
#include "memory_map.hpp"
#include "semihosting.hpp"

namespace ethosu_sdk {
namespace {

// Arm semihosting specification 3.0.
constexpr std::uint32_t sys_exit = 0x18;
constexpr std::uint32_t sys_exit_extended = 0x20;
constexpr std::uint32_t application_exit = 0x20026;  // ADP_Stopped_ApplicationExit
constexpr char end_of_transmission = 0x04;

volatile bool is_ending = false;

}  // namespace

bool board::ending() {
  return is_ending;
}

const char* hal::board_name() {
  return board::name;
}

void hal::exit(int code) {
  is_ending = true;
  uart_write(end_of_transmission);
  uart_drain();  // a simulator that stops now would lose what is still in the transmitter
  const std::uint32_t block[2] = {application_exit, static_cast<std::uint32_t>(code)};
  board::semihosting_call(sys_exit_extended, reinterpret_cast<std::uintptr_t>(block));
  board::semihosting_call(sys_exit, application_exit);
  for (;;) {
    asm volatile("wfi");
  }
}

}  // namespace ethosu_sdk
