// The application of a device on a wire: programs and inputs arrive over its UART, one run after the other.
#include <cstring>

#include "app/crc32.hpp"
#include "app/device/receiver.hpp"
#include "app/resident/loading.hpp"
#include "app/runner.hpp"
#include "app/sha256.hpp"
#include "hal/board.hpp"
#include "hal/clock.hpp"
#include "hal/entry.hpp"
#include "hal/fault.hpp"
#include "hal/memory.hpp"
#include "hal/uart.hpp"
#include "resident_config.hpp"

extern "C" {
// A simulator finds it by its name.
__attribute__((section(".bss.pool.input_image"))) alignas(16) std::uint8_t
    device_mark[ethosu_sdk::app::protocol::device_mark_bytes];
}

namespace ethosu_sdk {
namespace {

constexpr std::uint32_t silence_ms = 100;
// Without a character for so long it sleeps, and may then lose the first ones: the host sends some to wake
// it.
constexpr std::uint32_t awake_ms = 2000;

// The text of a mark with its NUL; empty where no simulator left one.
const char* simulator_name(char (&text)[app::protocol::device_mark_text_bytes + 1]) {
  std::uint32_t words[2];
  std::memcpy(words, device_mark, sizeof words);
  const std::uint8_t* const name = device_mark + sizeof words;
  const bool is_marked = words[0] == app::protocol::device_mark_magic &&
                         words[1] == app::crc32(name, app::protocol::device_mark_text_bytes);
  std::memset(text, 0, sizeof text);
  if (is_marked) {
    std::memcpy(text, name, app::protocol::device_mark_text_bytes);
  }
  return text;
}

void receive(app::Receiver& receiver) {
  std::uint32_t last_ms = hal::clock_ms();
  bool is_quiet = true;
  const volatile bool is_done = false;
  for (;;) {
    char character = 0;
    if (hal::uart_read(character)) {
      is_quiet = false;
      if (receiver.take(static_cast<std::uint8_t>(character))) {
        return;
      }
      last_ms = hal::clock_ms();
    } else if (!is_quiet && hal::clock_ms() - last_ms > silence_ms) {
      is_quiet = true;
      receiver.give_up();
    } else if (hal::clock_ms() - last_ms > awake_ms) {
      hal::sleep_unless(is_done);
    }
  }
}

int run() {
  app::Runner runner;
  runner.report_faults();
  app::RunnerSetup setup{};
  app::Failure failure;
  app::GivenMode mode;
  Span<const std::uint8_t> program;
  const bool is_ready =
      app::take_laid_program(program, mode, failure) && app::set_up(program, mode, nullptr, setup, failure);
  const int code = is_ready ? runner.run(setup) : runner.refuse(failure);
  hal::set_fault_reporter(nullptr);  // the runner goes
  return code;
}

app::Console console;
app::RecordWriter records(console);
char simulator[app::protocol::device_mark_text_bytes + 1];
char digest[app::sha256_hex_size];

}  // namespace

int hal::firmware_main() {
  hal::uart_open_both(app::protocol::wire_baud);
  hal::clock_open();
  app::sha256_hex(hal::code_begin(), hal::code_size(), digest);
  const app::DeviceIdentity identity{resident_config::firmware, hal::board_name(),
                                     static_cast<std::uint32_t>(hal::code_size()), digest,
                                     simulator_name(simulator)};
  static app::Receiver receiver({app::program_header_room(), app::program_room(), app::input_room()},
                                identity, records);
  receiver.announce();
  for (;;) {
    receive(receiver);
    receiver.report_end(static_cast<std::uint32_t>(run()));
  }
}

}  // namespace ethosu_sdk
