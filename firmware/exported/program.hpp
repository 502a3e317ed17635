// What the program brings: its files, its instructions, and the memory that it was measured to need.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/span.hpp"

namespace ethosu_sdk::exported {

struct Instruction {
  const char* kind;  // of INSTRUCTION_KINDS in the SDK's program/protocol.py
  const char* name;  // of the operator or backend
};

struct ProgramSetup {
  const char* method;
  Span<const std::uint8_t> model;
  Span<std::uint8_t> input_image;
  Span<const Instruction> instructions;
  // Memory of ExecuTorch: tensors that were planned; the runtime's own structures; what a kernel or delegate
  // takes while it runs, the NPU's scratch included.
  Span<std::uint8_t> planned;
  Span<std::uint8_t> method_pool;
  Span<std::uint8_t> temporary_pool;
};

// The exported program; the application of one program defines it.
ProgramSetup program_setup();

// Loads the program, runs every set of inputs of the image and prints the records. 0: all ran.
int run_program(const ProgramSetup& setup);

}  // namespace ethosu_sdk::exported
