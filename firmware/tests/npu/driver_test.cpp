// The driver against a register double that behaves as the technical reference manuals say, and misbehaves on
// demand.
#include "npu/driver.hpp"

#include <map>
#include <vector>

#include "board/host/doubles.hpp"
#include "tests/support/check.hpp"

namespace {

using namespace ethosu_sdk;
using npu::Code;

constexpr std::uint32_t config_u55_128 = 0x00001807;
constexpr std::uint32_t config_u85_256 = 0x20000118;
constexpr std::uint32_t id_u55 = 0x10066001;
constexpr std::uint32_t id_u85 = 0x20007000;
constexpr std::uint32_t CMD = 0x08;
constexpr std::uint32_t RESET = 0x0C;
constexpr std::uint32_t done_status = 0x22;  // irq_raised, cmd_end_reached

struct Write {
  std::uint32_t offset;
  std::uint32_t value;
};

class Device final : public host::NpuDouble {
 public:
  Device(std::uint32_t id, std::uint32_t config) : id_(id), config_(config) {}

  std::uint32_t read(std::uint32_t offset) override {
    switch (offset) {
      case 0x00:
        return id_;
      case 0x04:
        return reset_polls_left > 0 && reset_polls_left-- > 0 ? 0x8 : status;
      case 0x18:
        return 48;
      case 0x24:
        return prot;
      case 0x28:
        return config_;
      default:
        return registers[offset];
    }
  }

  void write(std::uint32_t offset, std::uint32_t value) override {
    writes.push_back({offset, value});
    registers[offset] = value;
    if (offset == RESET) {
      reset_polls_left = reset_polls;
      ++resets;
    } else if (offset == CMD && (value & 1) != 0) {
      status = status_after_run;
      if (raises_interrupt) {
        host::raise_npu_interrupt();
      }
    } else if (offset == CMD && (value & 2) != 0) {
      status &= ~0x2U;
    }
  }

  std::uint32_t last(std::uint32_t offset) const { return registers.at(offset); }
  bool wrote(std::uint32_t offset) const { return registers.count(offset) != 0; }

  std::map<std::uint32_t, std::uint32_t> registers;
  std::vector<Write> writes;
  std::uint32_t status = 0;
  std::uint32_t status_after_run = done_status;
  std::uint32_t prot = 1;
  std::uint32_t reset_polls = 3;
  std::uint32_t reset_polls_left = 0;
  int resets = 0;
  bool raises_interrupt = true;

 private:
  std::uint32_t id_;
  std::uint32_t config_;
};

alignas(16) std::uint8_t stream[32];
alignas(16) std::uint8_t weights[16];
alignas(16) std::uint8_t scratch[64];

npu::Job job_for(std::uint32_t config, std::uint32_t id) {
  return {stream, sizeof stream, config, id, {weights, scratch}, 2};
}

std::uint32_t low(const void* pointer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer));
}

void test_good_run() {
  Device device(id_u55, config_u55_128);
  host::set_npu(&device);
  npu::Driver driver;
  CHECK(driver.open(npu::MemoryMode::shared_sram).ok());
  CHECK(driver.identity().id == id_u55 && driver.identity().config == config_u55_128);
  CHECK(device.writes.front().offset == RESET && device.writes.front().value == 1);
  CHECK(device.last(0x1C) == 2 && device.last(0x3C) == 0x13);
  CHECK(device.last(0x40) == 0x0F1F0000 && device.last(0x4C) == 0x0F1F0000);
  device.registers[0x1A0] = 1000;
  device.registers[0x1A4] = 2;
  device.registers[0x18C] = 1;
  for (std::uint32_t i = 0; i < 4; ++i) {
    device.registers[0x300 + 4 * i] = 10 + i;
  }
  npu::Counters counters;
  CHECK(driver.run(job_for(config_u55_128, id_u55), 100, counters).ok());
  CHECK(device.last(0x10) == low(stream) && device.last(0x20) == sizeof stream);
  CHECK(device.last(0x80) == low(weights) && device.last(0x88) == low(scratch));
  CHECK(!device.wrote(0x84) && !device.wrote(0x14) && !device.wrote(0x90));  // no upper half; two regions
  CHECK(device.last(0x1A8) == (0x23U | 0x20U << 16));
  CHECK(device.last(0x184) == 0x8000000F && device.last(0x188) == UINT32_MAX);
  CHECK(counters.cycles == (2ULL << 32 | 1000) && counters.overflow == 1 && counters.count == 4);
  CHECK(counters.events[0].event == 0x82 && counters.events[3].value == 13);
  CHECK(device.last(CMD) == 2 && device.resets == 1);
}

void test_u85_layout() {
  Device device(id_u85, config_u85_256);
  host::set_npu(&device);
  npu::Driver driver;
  CHECK(driver.open(npu::MemoryMode::sram_only).ok());
  CHECK(device.last(0x1C) == 1 && device.last(0x3C) == 1);
  CHECK(device.last(0x50) == 0x00020F0B && device.last(0x54) == 0x00021F3F);
  npu::Counters counters;
  CHECK(driver.run(job_for(config_u85_256, id_u85), 100, counters).ok());
  CHECK(device.wrote(0x1180) && !device.wrote(0x180) && device.wrote(0x84));
  CHECK(device.last(0x1380) == 0x82 && counters.count == 7);
  const std::uint16_t nine[9] = {};
  CHECK(driver.select_events(nine, 9).code == Code::too_many_events);
  CHECK(driver.select_events(nine, 8).ok());
}

void test_refusals() {
  npu::Driver driver;
  host::set_npu(nullptr);
  CHECK(driver.open(npu::MemoryMode::shared_sram).code == Code::npu_absent);
  Device strange(id_u55, 0x70001807);
  host::set_npu(&strange);
  CHECK(driver.open(npu::MemoryMode::shared_sram).code == Code::unknown_product);
  Device stuck(id_u55, config_u55_128);
  stuck.reset_polls = UINT32_MAX;
  host::set_npu(&stuck);
  CHECK(driver.open(npu::MemoryMode::shared_sram).code == Code::reset_timeout);
  Device nonsecure(id_u55, config_u55_128);
  nonsecure.prot = 3;
  host::set_npu(&nonsecure);
  CHECK(driver.open(npu::MemoryMode::shared_sram).code == Code::wrong_protection);
}

void test_stream_mismatch() {
  Device device(id_u55, config_u55_128);
  host::set_npu(&device);
  npu::Driver driver;
  CHECK(driver.open(npu::MemoryMode::shared_sram).ok());
  constexpr std::uint32_t other_configs[] = {0x00003008, 0x00001806, 0x10001807, 0x00001817};
  for (const std::uint32_t config : other_configs) {
    const npu::Result result = driver.check_stream(config, id_u55);
    CHECK(result.code == Code::config_mismatch && result.found == config_u55_128 &&
          result.expected == config);
  }
  CHECK(driver.check_stream(config_u55_128, 0x20066001).code == Code::arch_mismatch);
  CHECK(driver.check_stream(config_u55_128, 0x10166001).code == Code::arch_mismatch);  // a newer minor
  CHECK(driver.check_stream(config_u55_128, 0x10056001).ok());                         // an older patch
  const std::uint16_t five[5] = {};
  CHECK(driver.select_events(five, 5).code == Code::too_many_events);
  npu::Counters counters;
  npu::Job job = job_for(config_u55_128, id_u55);
  job.bases[1] = scratch + 8;
  CHECK(driver.run(job, 100, counters).code == Code::job_misaligned);
  job = job_for(config_u55_128, id_u55);
  job.command_stream = stream + 4;
  CHECK(driver.run(job, 100, counters).code == Code::job_misaligned);
  CHECK(!device.wrote(0x10));  // nothing was started
}

void test_failed_jobs() {
  struct Case {
    std::uint32_t status;
    Code code;
  };
  constexpr Case cases[] = {
      {done_status | 0x4, Code::bus_status}, {0x2 | 0x10, Code::cmd_parse_error},
      {done_status | 0x80, Code::wd_fault},  {done_status | 0x100, Code::ecc_fault},
      {0x2 | 0x200, Code::branch_fault},     {0x2, Code::cmd_end_not_reached},
  };
  for (const Case& row : cases) {
    Device device(id_u55, config_u55_128);
    host::set_npu(&device);
    npu::Driver driver;
    CHECK(driver.open(npu::MemoryMode::shared_sram).ok());
    device.status_after_run = row.status;
    npu::Counters counters;
    const npu::Result result = driver.run(job_for(config_u55_128, id_u55), 100, counters);
    CHECK(result.code == row.code && result.found == row.status && result.expected == 48);
    CHECK(device.resets == 2);  // ready for the next job
  }
}

void test_timeout() {
  Device device(id_u55, config_u55_128);
  host::set_npu(&device);
  npu::Driver driver;
  CHECK(driver.open(npu::MemoryMode::shared_sram).ok());
  device.raises_interrupt = false;
  npu::Counters counters;
  CHECK(driver.run(job_for(config_u55_128, id_u55), 100, counters).code == Code::job_timeout);
  CHECK(device.resets == 2);
  device.raises_interrupt = true;
  device.status = 0;
  CHECK(driver.run(job_for(config_u55_128, id_u55), 100, counters).ok());
}

}  // namespace

int main() {
  test_good_run();
  test_u85_layout();
  test_refusals();
  test_stream_mismatch();
  test_failed_jobs();
  test_timeout();
  return host::failed_checks == 0 ? 0 : 1;
}
