// The PMU around each job of the NPU, through the two functions that Arm's Ethos-U core driver lets an
// application replace: it calls them when the NPU has power, before and after a command stream.

#include "exported/npu_counters.hpp"

#include <cstddef>

#include "exported/platform.hpp"
#include "npu/registers.hpp"

namespace ethosu_sdk::exported {
namespace {

constexpr std::uint32_t active_to_idle = npu::event::NPU_ACTIVE | std::uint32_t{npu::event::NPU_IDLE} << 16;

std::uint16_t chosen[most_events];
std::uint32_t chosen_count = 0;
NpuJob last;
NpuIdentity identity;
npu::PmuLayout pmu;
bool fresh = false;

volatile std::uint32_t& at(std::size_t offset) {
  return *reinterpret_cast<volatile std::uint32_t*>(npu_base() + offset);
}

void begin() {
  identity = {at(offsetof(npu::Registers, ID)), at(offsetof(npu::Registers, CONFIG))};
  const bool is_u85 = identity.config >> 28 == static_cast<std::uint32_t>(npu::Product::u85);
  pmu = is_u85 ? npu::pmu_u85 : npu::pmu_u55_u65;
  last = {};
  const std::uint16_t* events = chosen;
  last.count = chosen_count;
  if (chosen_count == 0 && is_u85) {
    events = npu::default_events_u85;
    last.count = sizeof npu::default_events_u85 / sizeof *npu::default_events_u85;
  } else if (chosen_count == 0) {
    events = npu::default_events_u55_u65;
    last.count = sizeof npu::default_events_u55_u65 / sizeof *npu::default_events_u55_u65;
  }
  last.count = last.count < pmu.event_counters ? last.count : pmu.event_counters;
  at(pmu.block + offsetof(npu::PmuRegisters, PMCR)) =
      npu::pmcr::cnt_en | npu::pmcr::event_cnt_rst | npu::pmcr::cycle_cnt_rst;
  at(pmu.block + offsetof(npu::PmuRegisters, PMOVSCLR)) = UINT32_MAX;
  at(pmu.block + offsetof(npu::PmuRegisters, PMCCNTR_CFG)) = active_to_idle;
  std::uint32_t enabled = npu::pm_cycle_counter;
  for (std::uint32_t i = 0; i < last.count; ++i) {
    last.events[i] = events[i];
    at(pmu.PMEVTYPER + 4 * i) = events[i];
    enabled |= 1U << i;
  }
  at(pmu.block + offsetof(npu::PmuRegisters, PMCNTENSET)) = enabled;
}

void end() {
  at(pmu.block + offsetof(npu::PmuRegisters, PMCNTENCLR)) =
      UINT32_MAX;  // from here on all values stand still
  const std::size_t cycles = pmu.block + offsetof(npu::PmuRegisters, PMCCNTR);
  last.cycles = std::uint64_t{at(cycles + 4) & 0xFFFF} << 32 | at(cycles);
  last.overflow = at(pmu.block + offsetof(npu::PmuRegisters, PMOVSSET));
  for (std::uint32_t i = 0; i < last.count; ++i) {
    last.values[i] = at(pmu.PMEVCNTR + 4 * i);
  }
  fresh = true;
}

}  // namespace

bool select_npu_events(const std::uint16_t* events, std::uint32_t count) {
  if (count > most_events) {
    return false;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    chosen[i] = events[i];
  }
  chosen_count = count;
  return true;
}

bool take_npu_job(NpuJob& job, NpuIdentity& found) {
  job = last;
  found = identity;
  const bool ran = fresh;
  fresh = false;
  return ran;
}

}  // namespace ethosu_sdk::exported

struct ethosu_driver;
extern "C" void ethosu_inference_begin(struct ethosu_driver*, void*) {
  ethosu_sdk::exported::begin();
}
extern "C" void ethosu_inference_end(struct ethosu_driver*, void*) {
  ethosu_sdk::exported::end();
}
