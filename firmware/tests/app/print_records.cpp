// Prints one record of every type on standard output, with values that need care.
#include <cstdio>

#include "app/console.hpp"
#include "app/record_writer.hpp"
#include "board/host/doubles.hpp"

int main() {
  using namespace ethosu_sdk::app;
  Console console;
  RecordWriter writer(console);
  const NumberPair pairs[] = {{130, 4294967295U}, {32, 0}};
  const std::int32_t sizes[] = {1, 10};
  const std::uint8_t bytes[] = {0x00, 0xFF, 0x10, 0x83};
  writer.write(protocol::device, 1U, "device_runner", "host", 64U, "00ff", "");
  writer.write(protocol::transfer, 0xFFFFFFFFU, "again", 3U, "crc");
  writer.write(protocol::boot, 1U, "a \"name\" \\ with\n\xC3\xA9", "host", 960U, "00ff");
  writer.write(protocol::data_file, 0U, 544U, "00ff");
  writer.write(protocol::npu, 0x10066001U, 0x1807U);
  writer.write(protocol::method, "forward", 1U, 2U, 0U);
  writer.write(protocol::call, 0U, "decode");
  writer.write(protocol::memory, "stack", 100U, 32768U);
  writer.write(protocol::input, 0U, 0U, 4U, Crc32Digits{0xAB});
  writer.write(protocol::instruction, 0U, 1U, "kernel", "aten::_softmax.out");
  writer.write(protocol::cpu, 0U, 1U, std::uint64_t{1} << 40);
  writer.write(protocol::pmu, 0U, 1U, std::uint64_t{1} << 47, 0x80000000U,
               ethosu_sdk::Span<const NumberPair>{pairs, 2});
  writer.write(protocol::inference, 0U, 1U);
  writer.write(protocol::output, 0U, 0U, "int8", ethosu_sdk::Span<const std::int32_t>{sizes, 2}, 4U,
               Crc32Digits{0xCBF43926});
  writer.write(protocol::data, 0U, 0U, 0U, Base64{{bytes, sizeof bytes}});
  writer.write(protocol::choice, 0U, 1U, ethosu_sdk::Span<const std::int32_t>{sizes, 2});
  writer.write(protocol::state, 0U, 1U, 4U, Crc32Digits{0xCBF43926});
  writer.write(protocol::state_data, 1U, 0U, Base64{{bytes, sizeof bytes}});
  writer.write(protocol::error, "inputs", "no_image", "");
  writer.write(protocol::fault, "HardFault", 1U, 2U, 3U, 4U, 5U, 6U, 7U);
  const std::uint8_t nonce[] = {'n', 'o', 'n', 'c', 'e'};
  char seal[sha256_hex_size];
  writer.seal({nonce, sizeof nonce}, seal);
  const char* const hex = seal;
  writer.write(protocol::end, protocol::status_ok, 1U, writer.count() + 1, hex);
  std::fputs(ethosu_sdk::host::take_uart().c_str(), stdout);
  return 0;
}
