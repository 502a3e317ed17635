#include "app/resident/loading.hpp"

#include <cstring>

#include "app/crc32.hpp"
#include "app/protocol.hpp"
#include "app/selected_kernels.hpp"
#include "resident_config.hpp"

// Each in a section of linker.ld by its name, and so in the memory that placement.ld gives it.
#define ETHOSU_POOL(name) __attribute__((section(".bss.pool." name))) alignas(16)

namespace config = ethosu_sdk::resident_config;

extern "C" {
// The host finds these by their names.
ETHOSU_POOL("input_image") std::uint8_t input_image[config::input_image_bytes];
ETHOSU_POOL("input_image") std::uint8_t program_header[20];
ETHOSU_POOL("input_image") alignas(128) std::uint8_t program_memory[config::program_bytes];
}

namespace ethosu_sdk::app {
namespace {

constexpr std::size_t max_delegates = 256;

ETHOSU_POOL("fast_scratch") std::uint8_t fast[config::fast_bytes];
ETHOSU_POOL("scratch") std::uint8_t scratch[config::scratch_bytes];
ETHOSU_POOL("planned") std::uint8_t planned[config::planned_bytes];
ETHOSU_POOL("method") std::uint8_t method_pool[config::method_pool_bytes];
npu::Payload payloads[max_delegates];
Span<std::uint8_t> planned_buffers[runtime::max_planned_buffers];
MethodSetup method_setup;

// What the host writes before the start: magic, version, the program's size in bytes, where its memory mode
// has things, and the CRC of these four.
struct ProgramHeader {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t bytes;
  std::uint32_t mode;
  std::uint32_t crc;
};
static_assert(sizeof(ProgramHeader) == sizeof program_header);

ProgramHeader read_header() {
  ProgramHeader header;
  std::memcpy(&header, program_header, sizeof header);
  return header;
}

GivenMode mode_of(const ProgramHeader& header) {
  switch (header.mode) {
    case protocol::program_mode_sram_only:
      return {true, npu::MemoryMode::sram_only};
    case protocol::program_mode_shared_sram:
      return {true, npu::MemoryMode::shared_sram};
    case protocol::program_mode_dedicated_sram:
      return {true, npu::MemoryMode::dedicated_sram};
    default:
      return {};
  }
}

}  // namespace

Span<std::uint8_t> program_room() {
  return {program_memory, sizeof program_memory};
}

Span<std::uint8_t> program_header_room() {
  return {program_header, sizeof program_header};
}

Span<std::uint8_t> input_room() {
  return {input_image, sizeof input_image};
}

bool is_program_laid() {
  return read_header().magic == protocol::program_header_magic;
}

bool take_laid_program(Span<const std::uint8_t>& program, GivenMode& mode, Failure& failure) {
  const ProgramHeader header = read_header();
  if (header.version != protocol::program_header_version ||
      header.crc != crc32(program_header, offsetof(ProgramHeader, crc))) {
    return failure.say("program", "bad_header", "version ", header.version, ", this firmware reads ",
                       protocol::program_header_version, " with a matching CRC");
  }
  if (header.mode > protocol::program_mode_dedicated_sram) {
    return failure.say("program", "bad_header", "memory mode ", header.mode, " is not known");
  }
  if (header.bytes > sizeof program_memory) {
    return failure.say("program", "too_large", header.bytes, " bytes, there is room for ",
                       sizeof program_memory);
  }
  program = {program_memory, header.bytes};
  mode = mode_of(header);
  return true;
}

bool set_up(Span<const std::uint8_t> program, GivenMode mode, RunFiles* files, RunnerSetup& setup,
            Failure& failure) {
  setup.firmware = config::firmware;
  setup.npu_timeout_ms = config::npu_timeout_ms;
  setup.kernels = selected_kernels();
  setup.input_pool = input_room();
  setup.files = files;
  const ResidentPools pools{{fast, sizeof fast},
                            {scratch, sizeof scratch},
                            {planned, sizeof planned},
                            {method_pool, sizeof method_pool},
                            {payloads, max_delegates},
                            {planned_buffers, runtime::max_planned_buffers},
                            method_setup};
  return place_program(program, pools, mode, setup, failure);
}

}  // namespace ethosu_sdk::app
