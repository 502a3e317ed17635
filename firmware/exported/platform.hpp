// What an application that `ethosu-sdk export --app` writes needs of the system it runs on.
#pragma once

#include <cstdint>

namespace ethosu_sdk::exported {

// Prints one character before it returns: a record must not be cut by another line.
void console_put(char character);

// The board's name in records.
const char* board_name();

// The NPU, as ExecuTorch's backend uses it. Counters are those of one job of the NPU.
constexpr std::uint32_t most_events = 8;

struct NpuJob {
  std::uint64_t cycles;
  std::uint32_t overflow;  // PMOVSSET
  std::uint32_t count;
  std::uint32_t events[most_events];
  std::uint32_t values[most_events];
};

struct NpuIdentity {
  std::uint32_t id;
  std::uint32_t config;
};

// The events that the next jobs count; none: those that the NPU's generation counts by default. False: too
// many.
bool select_npu_events(const std::uint16_t* events, std::uint32_t count);

// The job since the last call. False: none ran, or the system does not count.
bool take_npu_job(NpuJob& job, NpuIdentity& identity);

}  // namespace ethosu_sdk::exported
