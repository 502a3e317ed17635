// Log lines for people, in the form of ExecuTorch's runner: `I [executorch:FILE:LINE FUNC()] message`.
#pragma once

#include "app/console.hpp"

namespace ethosu_sdk::app {

struct LogOrigin {
  char level;  // I or E
  const char* file;
  int line;
  const char* function;
};

template <typename... Pieces>
void log_line(const LogOrigin& origin, const Pieces&... pieces) {
  Console console;
  console.put(origin.level);
  write_all(console, " [executorch:", origin.file, ":", origin.line, " ", origin.function, "()] ", pieces...);
  console.put('\n');
}

}  // namespace ethosu_sdk::app

#define ETHOSU_LOG_INFO(...) \
  ::ethosu_sdk::app::log_line({'I', __FILE_NAME__, __LINE__, static_cast<const char*>(__func__)}, __VA_ARGS__)
#define ETHOSU_LOG_ERROR(...) \
  ::ethosu_sdk::app::log_line({'E', __FILE_NAME__, __LINE__, static_cast<const char*>(__func__)}, __VA_ARGS__)
