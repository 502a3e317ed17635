// What the driver and the payload decoder can say: a named code and the two numbers that explain it.
#pragma once

#include <cstdint>

namespace ethosu_sdk::npu {

enum class Code : std::uint8_t {
  ok,
  // the payload
  payload_truncated,
  payload_unknown_block,
  payload_block_missing,
  payload_block_repeated,
  payload_external_block,
  payload_no_end,
  payload_bad_size,
  payload_not_cop1,
  payload_unknown_action,
  payload_misaligned,
  payload_bad_slot,
  // the device
  npu_absent,
  unknown_product,
  reset_timeout,
  wrong_protection,
  config_mismatch,
  arch_mismatch,
  too_many_events,
  // a job
  job_misaligned,
  job_timeout,
  bus_status,
  cmd_parse_error,
  wd_fault,
  ecc_fault,
  branch_fault,
  cmd_end_not_reached,
};

struct Result {
  Code code = Code::ok;
  std::uint32_t found = 0;     // the value met: an offset, a register
  std::uint32_t expected = 0;  // the value due, or a second fact; what_values() names both

  bool ok() const { return code == Code::ok; }
};

// The code's name, such as "config_mismatch".
const char* code_name(Code code);

// What Result::found and Result::expected hold, such as "NPU CONFIG" and "command stream CONFIG".
struct ValueNames {
  const char* found;
  const char* expected;  // nullptr: one value only
};
ValueNames value_names(Code code);

}  // namespace ethosu_sdk::npu
