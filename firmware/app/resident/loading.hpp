// The memory of a firmware for any program, and a program that lies in it.
#pragma once

#include "app/failure.hpp"
#include "app/resident/placement.hpp"
#include "app/runner.hpp"
#include "base/span.hpp"

namespace ethosu_sdk::app {

Span<std::uint8_t> program_room();
Span<std::uint8_t> program_header_room();
Span<std::uint8_t> input_room();

// Whether somebody laid a header into its room.
bool is_program_laid();
// The program that the header announces, and where its memory mode has things.
bool take_laid_program(Span<const std::uint8_t>& program, GivenMode& mode, Failure& failure);

// Completes `setup` for `program`, which runs with the input image in its room, or with `files`.
bool set_up(Span<const std::uint8_t> program, GivenMode mode, RunFiles* files, RunnerSetup& setup,
            Failure& failure);

}  // namespace ethosu_sdk::app
