// The application of no model in particular: a program and its inputs arrive at run time, either laid into
// memory by the host before the start, or as files that a command line names.
#include <cstring>

#include "app/crc32.hpp"
#include "app/protocol.hpp"
#include "app/resident/command_line.hpp"
#include "app/resident/host_files.hpp"
#include "app/resident/placement.hpp"
#include "app/runner.hpp"
#include "app/selected_kernels.hpp"
#include "hal/entry.hpp"
#include "hal/semihosting.hpp"
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

namespace ethosu_sdk {
namespace {

constexpr std::size_t max_command_line = 1024;
constexpr std::size_t max_delegates = 256;

ETHOSU_POOL("fast_scratch") std::uint8_t fast[config::fast_bytes];
ETHOSU_POOL("scratch") std::uint8_t scratch[config::scratch_bytes];
ETHOSU_POOL("planned") std::uint8_t planned[config::planned_bytes];
ETHOSU_POOL("method") std::uint8_t method_pool[config::method_pool_bytes];
npu::Payload payloads[max_delegates];
Span<std::uint8_t> planned_buffers[runtime::max_planned_buffers];
app::MethodSetup method_setup;

char command_text[max_command_line];
app::CommandLine command_line;
app::HostFiles files(command_line, {input_image, sizeof input_image});

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

bool take_laid_program(const ProgramHeader& header, Span<const std::uint8_t>& program,
                       app::Failure& failure) {
  if (header.version != app::protocol::program_header_version ||
      header.crc != app::crc32(program_header, offsetof(ProgramHeader, crc))) {
    return failure.say("program", "bad_header", "version ", header.version, ", this firmware reads ",
                       app::protocol::program_header_version, " with a matching CRC");
  }
  if (header.mode > app::protocol::program_mode_dedicated_sram) {
    return failure.say("program", "bad_header", "memory mode ", header.mode, " is not known");
  }
  if (header.bytes > sizeof program_memory) {
    return failure.say("program", "too_large", header.bytes, " bytes, there is room for ",
                       sizeof program_memory);
  }
  program = {program_memory, header.bytes};
  return true;
}

app::GivenMode mode_of(const ProgramHeader& header) {
  switch (header.mode) {
    case app::protocol::program_mode_sram_only:
      return {true, npu::MemoryMode::sram_only};
    case app::protocol::program_mode_shared_sram:
      return {true, npu::MemoryMode::shared_sram};
    case app::protocol::program_mode_dedicated_sram:
      return {true, npu::MemoryMode::dedicated_sram};
    default:
      return {};
  }
}

bool take_named_program(Span<const std::uint8_t>& program, app::Failure& failure) {
  // Without arguments a simulator may still tell the program's own name.
  if (!hal::command_line(command_text, sizeof command_text) || app::count_words(command_text) < 2) {
    return failure.say("program", "no_program",
                       "neither did the host lay one into memory, nor is there a command line");
  }
  return app::parse_command_line(command_text, command_line, failure) &&
         files.read_program({program_memory, sizeof program_memory}, program, failure);
}

bool prepare(app::RunnerSetup& setup, app::Failure& failure) {
  const ProgramHeader header = read_header();
  const bool laid = header.magic == app::protocol::program_header_magic;
  Span<const std::uint8_t> program;
  if (!(laid ? take_laid_program(header, program, failure) : take_named_program(program, failure))) {
    return false;
  }
  setup.firmware = config::firmware;
  setup.npu_timeout_ms = config::npu_timeout_ms;
  setup.kernels = app::selected_kernels();
  setup.input_pool = {input_image, sizeof input_image};
  setup.files = laid ? nullptr : &files;
  const app::ResidentPools pools{{fast, sizeof fast},
                                 {scratch, sizeof scratch},
                                 {planned, sizeof planned},
                                 {method_pool, sizeof method_pool},
                                 {payloads, max_delegates},
                                 {planned_buffers, runtime::max_planned_buffers},
                                 method_setup};
  return app::place_program(program, pools, laid ? mode_of(header) : app::GivenMode{}, setup, failure);
}

}  // namespace

int hal::firmware_main() {
  app::Runner runner;
  runner.open();
  app::RunnerSetup setup{};
  app::Failure failure;
  return prepare(setup, failure) ? runner.run(setup) : runner.refuse(failure);
}

}  // namespace ethosu_sdk
