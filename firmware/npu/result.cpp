#include "npu/result.hpp"

#include <cstddef>

namespace ethosu_sdk::npu {
namespace {

struct Row {
  Code code;
  const char* name;
  ValueNames values;
};

constexpr Row rows[] = {
    {Code::ok, "ok", {"value", nullptr}},
    {Code::payload_truncated, "payload_truncated", {"offset", "payload bytes"}},
    {Code::payload_unknown_block, "payload_unknown_block", {"offset", nullptr}},
    {Code::payload_block_missing, "payload_block_missing", {"block mask", "needed mask"}},
    {Code::payload_block_repeated, "payload_block_repeated", {"offset", nullptr}},
    {Code::payload_external_block, "payload_external_block", {"offset", nullptr}},
    {Code::payload_no_end, "payload_no_end", {"offset", "payload bytes"}},
    {Code::payload_bad_size, "payload_bad_size", {"bytes", "needed bytes"}},
    {Code::payload_not_cop1, "payload_not_cop1", {"first word", "COP1"}},
    {Code::payload_unknown_action, "payload_unknown_action", {"action word", "word index"}},
    {Code::payload_misaligned, "payload_misaligned", {"address", "alignment"}},
    {Code::payload_bad_slot, "payload_bad_slot", {"slot", "word index"}},
    {Code::npu_absent, "npu_absent", {"ID", "CONFIG"}},
    {Code::unknown_product, "unknown_product", {"CONFIG", nullptr}},
    {Code::reset_timeout, "reset_timeout", {"STATUS", "polls"}},
    {Code::wrong_protection, "wrong_protection", {"PROT", "needed PROT"}},
    {Code::config_mismatch, "config_mismatch", {"NPU CONFIG", "command stream CONFIG"}},
    {Code::arch_mismatch, "arch_mismatch", {"NPU ID", "command stream ID"}},
    {Code::too_many_events, "too_many_events", {"events", "event counters"}},
    {Code::job_misaligned, "job_misaligned", {"address", "alignment"}},
    {Code::job_timeout, "job_timeout", {"STATUS", "QREAD"}},
    {Code::bus_status, "bus_status", {"STATUS", "QREAD"}},
    {Code::cmd_parse_error, "cmd_parse_error", {"STATUS", "QREAD"}},
    {Code::wd_fault, "wd_fault", {"STATUS", "QREAD"}},
    {Code::ecc_fault, "ecc_fault", {"STATUS", "QREAD"}},
    {Code::branch_fault, "branch_fault", {"STATUS", "QREAD"}},
    {Code::cmd_end_not_reached, "cmd_end_not_reached", {"STATUS", "QREAD"}},
};

constexpr bool rows_in_order() {
  std::size_t index = 0;
  for (const Row& row : rows) {
    if (static_cast<std::size_t>(row.code) != index++) {
      return false;
    }
  }
  return index == static_cast<std::size_t>(Code::cmd_end_not_reached) + 1;
}
static_assert(rows_in_order(), "one row per code, in the order of the enumeration");

}  // namespace

const char* code_name(Code code) {
  return rows[static_cast<std::size_t>(code)].name;
}

ValueNames value_names(Code code) {
  return rows[static_cast<std::size_t>(code)].values;
}

}  // namespace ethosu_sdk::npu
