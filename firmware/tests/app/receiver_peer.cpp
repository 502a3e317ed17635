// A device's receiver on this machine, for tests that send it damaged transfers. Each command on standard
// input is a kind, a length and bytes; the answer is what the device printed, and what it would run if it now
// would.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "app/console.hpp"
#include "app/device/receiver.hpp"
#include "board/host/doubles.hpp"

namespace {

using namespace ethosu_sdk;

constexpr std::size_t room_bytes = 1 << 14;
std::uint8_t header[20];
std::uint8_t program[room_bytes];
std::uint8_t image[room_bytes];

struct Device {
  app::Console console;
  app::RecordWriter records{console};
  app::Receiver receiver{{{header, sizeof header}, {program, room_bytes}, {image, room_bytes}},
                         {"device_runner", "host", 0, "", ""},
                         records};
  Device() { receiver.announce(); }
};

void put(std::uint32_t size, const void* data) {
  std::fwrite(&size, sizeof size, 1, stdout);
  std::fwrite(data, 1, size, stdout);
}

}  // namespace

int main() {
  auto* device = new Device;
  char kind = 0;
  std::uint32_t size = 0;
  while (std::fread(&kind, 1, 1, stdin) == 1 && std::fread(&size, sizeof size, 1, stdin) == 1) {
    std::vector<std::uint8_t> bytes(size);
    if (std::fread(bytes.data(), 1, size, stdin) != size) {
      break;
    }
    std::string content;
    if (kind == 'r') {  // the device is reset: its memories stay
      delete device;
      device = new Device;
    } else if (kind == 's') {
      device->receiver.give_up();
    }
    for (const std::uint8_t byte : bytes) {
      if (device->receiver.take(byte)) {
        content.append(reinterpret_cast<char*>(header), sizeof header);
        content.append(reinterpret_cast<char*>(program), room_bytes);
        content.append(reinterpret_cast<char*>(image), room_bytes);
      }
    }
    const std::string printed = host::take_uart();
    put(static_cast<std::uint32_t>(printed.size()), printed.data());
    put(static_cast<std::uint32_t>(content.size()), content.data());
    std::fflush(stdout);
  }
  delete device;
  return 0;
}
