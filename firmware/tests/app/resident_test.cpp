// The resident runner's own parts: command lines, which file belongs to which input, memory modes.
#include <cstring>
#include <string>
#include <vector>

#include "app/resident/command_line.hpp"
#include "app/resident/host_files.hpp"
#include "app/resident/placement.hpp"
#include "tests/support/check.hpp"

namespace {

using namespace ethosu_sdk;

struct Parsed {
  bool ok = false;
  std::string text;  // the words of `line` lie in it
  app::CommandLine line;
  app::Failure failure;
};

void parse(const char* text, Parsed& parsed) {
  parsed.text = text;
  parsed.ok = app::parse_command_line(parsed.text.data(), parsed.line, parsed.failure);
}

void test_command_lines() {
  Parsed good;
  parse("executor_runner -m program.pte -o out  -i i0.bin\t-i i1.bin ", good);
  CHECK(good.ok && good.line.input_count == 2);
  CHECK(std::strcmp(good.line.model, "program.pte") == 0 && std::strcmp(good.line.output, "out") == 0);
  CHECK(std::strcmp(good.line.inputs[0], "i0.bin") == 0 && std::strcmp(good.line.inputs[1], "i1.bin") == 0);

  const char* const bad[] = {"",
                             "runner",
                             "runner -i a",
                             "runner -m",
                             "runner -m a -x b",
                             "runner -m a -m b",
                             "runner -m a -o b -o c",
                             "runner -m a stray b"};
  for (const char* const text : bad) {
    Parsed parsed;
    parse(text, parsed);
    CHECK(!parsed.ok && std::strcmp(parsed.failure.code, "bad_command_line") == 0);
  }
  std::string many = "runner -m a";
  for (std::uint32_t i = 0; i < app::CommandLine::max_inputs + 1; ++i) {
    many += " -i f";
  }
  Parsed parsed;
  parse(many.c_str(), parsed);
  CHECK(!parsed.ok);

  CHECK(app::count_words("") == 0 && app::count_words("  ") == 0);
  CHECK(app::count_words("a") == 1 && app::count_words(" a  b ") == 2);
}

using Sizes = std::vector<std::size_t>;

bool match(const Sizes& wanted, const Sizes& files, std::vector<std::uint32_t>& chosen) {
  chosen.assign(wanted.size(), 77);
  app::Failure failure;
  return app::match_files({wanted.data(), wanted.size()}, {files.data(), files.size()}, chosen.data(),
                          failure);
}

void test_files() {
  std::vector<std::uint32_t> chosen;
  CHECK(match({16, 4}, {16, 4}, chosen) && chosen == (std::vector<std::uint32_t>{0, 1}));
  CHECK(match({}, {}, chosen));
  // A scalar that the program holds as a value of its own: one file for each.
  CHECK(match({16, 0, 4}, {16, 8, 4}, chosen) && chosen == (std::vector<std::uint32_t>{0, app::no_file, 2}));
  // Scalars that the program does not know of.
  CHECK(match({16, 4}, {16, 8, 1, 4}, chosen) && chosen == (std::vector<std::uint32_t>{0, 3}));
  CHECK(match({16}, {8, 16, 8}, chosen) && chosen == (std::vector<std::uint32_t>{1}));
  CHECK(match({16, 0}, {16, 8, 1}, chosen) && chosen == (std::vector<std::uint32_t>{0, app::no_file}));
  // A tensor of a scalar's size takes the first such file.
  CHECK(match({8}, {8, 8}, chosen) && chosen == (std::vector<std::uint32_t>{0}));

  CHECK(!match({16, 4}, {16}, chosen));
  CHECK(!match({16, 4}, {4, 16}, chosen));
  CHECK(!match({16}, {16, 16}, chosen));
  CHECK(!match({16}, {12, 16}, chosen));
  CHECK(!match({16}, {15}, chosen));
  CHECK(!match({1}, {8}, chosen));
  CHECK(!match({16}, {}, chosen));
  CHECK(!match({}, {16}, chosen));
  CHECK(match({}, {8}, chosen));
}

app::ModeError mode_of(const std::string& flags, npu::MemoryMode& mode) {
  return app::memory_mode_of({reinterpret_cast<const std::uint8_t*>(flags.data()), flags.size()}, mode);
}

void test_memory_modes() {
  npu::MemoryMode mode{};
  CHECK(mode_of("--system-config=x --memory-mode=Sram_Only --verbose", mode) == app::ModeError::none);
  CHECK(mode == npu::MemoryMode::sram_only);
  CHECK(mode_of("--memory-mode=Shared_Sram", mode) == app::ModeError::none &&
        mode == npu::MemoryMode::shared_sram);
  CHECK(mode_of("--memory-mode=Dedicated_Sram_384KB", mode) == app::ModeError::none);
  CHECK(mode == npu::MemoryMode::dedicated_sram);
  // The last one counts, as for Vela.
  CHECK(mode_of("--memory-mode=Shared_Sram --memory-mode=Sram_Only", mode) == app::ModeError::none);
  CHECK(mode == npu::MemoryMode::sram_only);
  for (const char* const flags :
       {"", " ", "--memory-mod", "x--memory-mode=Sram_Only", "memory-mode=Sram_Only"}) {
    CHECK(mode_of(flags, mode) == app::ModeError::missing);
  }
  for (const char* const flags :
       {"--memory-mode=", "--memory-mode=Sram", "--memory-mode=Sram_Only2", "--memory-mode=X"}) {
    CHECK(mode_of(flags, mode) == app::ModeError::unknown);
  }
}

}  // namespace

int main() {
  test_command_lines();
  test_files();
  test_memory_modes();
  return host::failed_checks == 0 ? 0 : 1;
}
