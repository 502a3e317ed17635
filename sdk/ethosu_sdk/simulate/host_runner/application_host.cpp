// The application of `export --app` on this machine: its parent executes the Ethos-U delegates, its memory is
// as large as it is told, and its records go to the standard output.
//
// Usage: application MODEL.pte INPUT_IMAGE METHOD BOARD INSTRUCTIONS PLANNED METHOD_POOL TEMPORARY_POOL FD
//
// INSTRUCTIONS has a line for each instruction: kind, tab, name. The three sizes are bytes.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "exported/platform.hpp"
#include "exported/program.hpp"
#include "remote_ethosu.hpp"

namespace {

const char* g_board = "";

// Aligned like a pool of the board, and not a byte larger.
ethosu_sdk::Span<std::uint8_t> pool(std::size_t size) {
  constexpr std::align_val_t alignment{64};
  return {static_cast<std::uint8_t*>(::operator new(size == 0 ? 1 : size, alignment)), size};
}

ethosu_sdk::Span<std::uint8_t> loaded(const char* path) {
  const std::vector<char> content = content_of(path);
  const ethosu_sdk::Span<std::uint8_t> memory = pool(content.size());
  std::memcpy(memory.data(), content.data(), content.size());
  return memory;
}

struct Instructions {
  explicit Instructions(const char* path) {
    std::ifstream stream(path);
    for (std::string kind, name; std::getline(stream, kind, '\t') && std::getline(stream, name);) {
      texts.push_back(kind);
      texts.push_back(name);
    }
    for (std::size_t i = 0; i < texts.size(); i += 2) {
      rows.push_back({texts[i].c_str(), texts[i + 1].c_str()});
    }
  }
  std::vector<std::string> texts;
  std::vector<ethosu_sdk::exported::Instruction> rows;
};

}  // namespace

namespace ethosu_sdk::exported {

void console_put(char character) {
  std::putchar(character);
}

const char* board_name() {
  return g_board;
}

}  // namespace ethosu_sdk::exported

int main(int argc, char** argv) {
  if (argc != 10) {
    std::fprintf(
        stderr,
        "usage: %s MODEL.pte INPUT_IMAGE METHOD BOARD INSTRUCTIONS PLANNED METHOD_POOL TEMPORARY_POOL FD\n",
        argv[0]);
    return 2;
  }
  const Socket socket(std::atoi(argv[9]));
  g_socket = &socket;
  g_board = argv[4];
  static RemoteEthosU backend;
  const Error error = executorch::runtime::register_backend(Backend{"EthosUBackend", &backend});
  if (error != Error::Ok) return fail("EthosUBackend could not be registered", error), 1;
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);  // a record is never cut by another line
  const Instructions instructions(argv[5]);
  const auto size = [argv](int at) { return static_cast<std::size_t>(std::strtoull(argv[at], nullptr, 10)); };
  const int code = ethosu_sdk::exported::run_program({
      argv[3],
      loaded(argv[1]),
      loaded(argv[2]),
      {instructions.rows.data(), instructions.rows.size()},
      pool(size(6)),
      pool(size(7)),
      pool(size(8)),
  });
  std::fflush(stdout);
  socket.send(Kind::kDone, {});
  return code;
}
