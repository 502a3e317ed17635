// Runs command streams on the Ethos-U, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "npu/registers.hpp"
#include "npu/result.hpp"
#include "npu/settings.hpp"

namespace ethosu_sdk::npu {

// What the device says of itself.
struct Identity {
  std::uint32_t id = 0;
  std::uint32_t config = 0;
};

// Regions 0 to region_count - 1 get `bases`; all are 16-byte aligned and outlive the job.
struct Job {
  const std::uint8_t* command_stream;
  std::uint32_t command_bytes;
  std::uint32_t config_word;  // the CONFIG and ID registers that the stream was built for
  std::uint32_t arch_word;
  const void* bases[base_pointer_count];
  std::uint32_t region_count;
};

struct EventCounter {
  std::uint16_t event;
  std::uint32_t value;
};

// Counters around one job.
struct Counters {
  std::uint64_t cycles = 0;    // NPU_ACTIVE to NPU_IDLE
  std::uint32_t overflow = 0;  // PMOVSSET: bit n for event counter n, bit 31 for the cycle counter
  std::uint32_t count = 0;
  EventCounter events[max_event_counters] = {};
};

class Driver {
 public:
  // Identifies and resets the NPU and claims it for the Secure privileged state. Clock and power stay
  // requested until the end of the run.
  Result open(MemoryMode mode);
  const Identity& identity() const { return identity_; }

  // The stream's CONFIG and ID words against the device's.
  Result check_stream(std::uint32_t config_word, std::uint32_t arch_word) const;

  // Chooses the events to count; with none, the family's defaults (those of ExecuTorch's runner).
  Result select_events(const std::uint16_t* events, std::uint32_t count);

  // Runs `job` to its end, at most `timeout_ms`. After an error the NPU is reset, ready for the next job.
  Result run(const Job& job, std::uint32_t timeout_ms, Counters& counters);

 private:
  Result reset();
  void program(const Job& job);
  void start_counters();
  void stop_counters(Counters& counters);
  Result wait(std::uint32_t timeout_ms);
  static void on_interrupt(void* context);

  Identity identity_;
  Product product_ = Product::u55;
  Settings settings_{};
  PmuLayout pmu_ = pmu_u55_u65;
  std::uint16_t events_[max_event_counters] = {};
  std::uint32_t event_count_ = 0;
  volatile bool done_ = false;
  volatile std::uint32_t final_status_ = 0;
};

}  // namespace ethosu_sdk::npu
