// The command line of ExecuTorch's runner for the simulated board: `executor_runner -m program.pte -i i0.bin
// -o out`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/runner.hpp"

namespace ethosu_sdk::app {

struct CommandLine {
  static constexpr std::uint32_t max_inputs = 64;

  const char* model = nullptr;   // -m
  const char* output = nullptr;  // -o: what the names of output files begin with; nullptr: none are written
  const char* inputs[max_inputs] = {};  // -i, in their order
  std::uint32_t input_count = 0;
};

// The first word is the program's own name.
std::uint32_t count_words(const char* text);

// Parts `text` into words at its blanks, in place: `line` points into it.
bool parse_command_line(char* text, CommandLine& line, Failure& failure);

}  // namespace ethosu_sdk::app
