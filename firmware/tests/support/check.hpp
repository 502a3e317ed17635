// The least that a test program needs: CHECK counts and reports, and the result becomes the exit code.
#pragma once

#include <cstdio>

namespace ethosu_sdk::host {

inline int failed_checks = 0;

inline void check(bool passed, const char* expression, const char* file, int line) {
  if (!passed) {
    ++failed_checks;
    std::printf("%s:%d: CHECK(%s) failed\n", file, line, expression);
  }
}

}  // namespace ethosu_sdk::host

#define CHECK(expression) ::ethosu_sdk::host::check((expression), #expression, __FILE_NAME__, __LINE__)
