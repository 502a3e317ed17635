// Why a run cannot begin or go on, for the `error` record.
#pragma once

#include "base/text.hpp"

namespace ethosu_sdk::app {

struct Failure {
  const char* stage = nullptr;
  const char* code = nullptr;
  Text<200> detail;

  // Always false, for `return failure.say(...)`.
  template <typename... Pieces>
  bool say(const char* stage_name, const char* code_name, const Pieces&... pieces) {
    stage = stage_name;
    code = code_name;
    detail = {};
    write_all(detail, pieces...);
    return false;
  }
};

}  // namespace ethosu_sdk::app
