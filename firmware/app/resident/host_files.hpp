// The files that a command line names: the program, its inputs, its outputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/resident/command_line.hpp"
#include "app/runner.hpp"

namespace ethosu_sdk::app {

class HostFiles final : public RunFiles {
 public:
  // `line` outlives the files; inputs are read into `input_pool`.
  HostFiles(const CommandLine& line, Span<std::uint8_t> input_pool) : line_(line), input_pool_(input_pool) {}

  // Reads the program to the beginning of `memory`.
  bool read_program(Span<std::uint8_t> memory, Span<const std::uint8_t>& program, Failure& failure);

  bool provide_inputs(const runtime::Method& method, Failure& failure) override;
  bool take_output(std::uint32_t index, Bytes bytes, Failure& failure) override;

 private:
  bool measure_inputs(Failure& failure);

  const CommandLine& line_;
  Span<std::uint8_t> input_pool_;
  std::size_t sizes_[CommandLine::max_inputs] = {};
};

// Which file each of `input_count` inputs of a method gets: `chosen[input]`, or `no_file`. `wanted[input]`
// are an input's bytes, 0 for one that is no tensor. With a file for every input they belong together in
// their order. More files than that are Python scalars among a model's example inputs, which are files of 8
// bytes or 1 but need not be inputs of its program: then each tensor gets the first file of its size behind
// the one before, and only files of those two sizes may be left over.
constexpr std::uint32_t no_file = UINT32_MAX;
bool match_files(Span<const std::size_t> wanted, Span<const std::size_t> files, std::uint32_t* chosen,
                 Failure& failure);

}  // namespace ethosu_sdk::app
