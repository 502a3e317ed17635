// The application of no model in particular: a program and its inputs arrive at run time, either laid into
// memory by the host before the start, or as files that a command line names.
#include "app/resident/command_line.hpp"
#include "app/resident/host_files.hpp"
#include "app/resident/loading.hpp"
#include "app/runner.hpp"
#include "hal/entry.hpp"
#include "hal/semihosting.hpp"

namespace ethosu_sdk {
namespace {

constexpr std::size_t max_command_line = 1024;

char command_text[max_command_line];
app::CommandLine command_line;
app::HostFiles files(command_line, app::input_room());

bool take_named_program(Span<const std::uint8_t>& program, app::Failure& failure) {
  // Without arguments a simulator may still tell the program's own name.
  if (!hal::command_line(command_text, sizeof command_text) || app::count_words(command_text) < 2) {
    return failure.say("program", "no_program",
                       "neither did the host lay one into memory, nor is there a command line");
  }
  return app::parse_command_line(command_text, command_line, failure) &&
         files.read_program(app::program_room(), program, failure);
}

bool prepare(app::RunnerSetup& setup, app::Failure& failure) {
  const bool laid = app::is_program_laid();
  app::GivenMode mode;
  Span<const std::uint8_t> program;
  if (!(laid ? app::take_laid_program(program, mode, failure) : take_named_program(program, failure))) {
    return false;
  }
  return app::set_up(program, mode, laid ? nullptr : &files, setup, failure);
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
