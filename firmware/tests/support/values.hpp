// Arguments of kernels, as a program holds them.
#pragma once

#include <cstdint>

#include "kernels/support/kernel_api.hpp"

namespace ethosu_sdk {

inline Value integer(std::int64_t number) {
  Value value;
  value.kind = ValueKind::integer;
  value.integer = number;
  return value;
}

inline Value boolean(bool flag) {
  Value value;
  value.kind = ValueKind::boolean;
  value.boolean = flag;
  return value;
}

inline Value real(double number) {
  Value value;
  value.kind = ValueKind::real;
  value.real = number;
  return value;
}

}  // namespace ethosu_sdk
