// Where a program that arrives at run time gets its memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/runner.hpp"
#include "npu/payload.hpp"
#include "npu/settings.hpp"
#include "runtime/program_facts.hpp"

namespace ethosu_sdk::app {

// The board's memory that stands ready: `fast` beside the NPU, everything else in the large memory.
struct ResidentPools {
  Span<std::uint8_t> fast;
  Span<std::uint8_t> scratch;
  Span<std::uint8_t> planned;
  Span<std::uint8_t> method;
  Span<npu::Payload> payloads;
  Span<Span<std::uint8_t>> planned_buffers;
  MethodSetup& method_setup;
};

// What the Vela flags in a program ask for.
enum class ModeError : std::uint8_t { none, missing, unknown };
ModeError memory_mode_of(Span<const std::uint8_t> compile_flags, npu::MemoryMode& mode);

// Where the host says that things lie; what is not given, the program's flags tell by the name of the mode.
struct GivenMode {
  bool is_given = false;
  npu::MemoryMode mode = npu::MemoryMode::shared_sram;
};

// Reads what `model` needs and completes `setup` with it: model, method, memory mode and memory. Scratch that
// the memory mode wants beside the NPU but that does not fit there lies in the large memory, and the log says
// so.
bool place_program(Span<const std::uint8_t> model, const ResidentPools& pools, GivenMode given,
                   RunnerSetup& setup, Failure& failure);

}  // namespace ethosu_sdk::app
