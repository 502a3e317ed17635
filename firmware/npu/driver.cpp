#include "npu/driver.hpp"

#include "hal/clock.hpp"
#include "hal/marks.hpp"
#include "hal/npu_port.hpp"

namespace ethosu_sdk::npu {
namespace {

constexpr std::uint32_t reset_polls = 100'000;
constexpr std::size_t stream_alignment = 16;

constexpr std::uint32_t ID = offsetof(Registers, ID);
constexpr std::uint32_t STATUS = offsetof(Registers, STATUS);
constexpr std::uint32_t CMD = offsetof(Registers, CMD);
constexpr std::uint32_t RESET = offsetof(Registers, RESET);
constexpr std::uint32_t QBASE = offsetof(Registers, QBASE);
constexpr std::uint32_t QREAD = offsetof(Registers, QREAD);
constexpr std::uint32_t QCONFIG = offsetof(Registers, QCONFIG);
constexpr std::uint32_t QSIZE = offsetof(Registers, QSIZE);
constexpr std::uint32_t PROT = offsetof(Registers, PROT);
constexpr std::uint32_t CONFIG = offsetof(Registers, CONFIG);
constexpr std::uint32_t REGIONCFG = offsetof(Registers, REGIONCFG);
constexpr std::uint32_t AXI_LIMIT_or_MEM_ATTR = offsetof(Registers, AXI_LIMIT_or_MEM_ATTR);
constexpr std::uint32_t AXI_SRAM = offsetof(Registers, AXI_SRAM);
constexpr std::uint32_t AXI_EXT = offsetof(Registers, AXI_EXT);
constexpr std::uint32_t BASEP = offsetof(Registers, BASEP);

constexpr std::uint32_t PMCR = offsetof(PmuRegisters, PMCR);
constexpr std::uint32_t PMCNTENSET = offsetof(PmuRegisters, PMCNTENSET);
constexpr std::uint32_t PMCNTENCLR = offsetof(PmuRegisters, PMCNTENCLR);
constexpr std::uint32_t PMOVSSET = offsetof(PmuRegisters, PMOVSSET);
constexpr std::uint32_t PMOVSCLR = offsetof(PmuRegisters, PMOVSCLR);
constexpr std::uint32_t PMCCNTR = offsetof(PmuRegisters, PMCCNTR);
constexpr std::uint32_t PMCCNTR_CFG = offsetof(PmuRegisters, PMCCNTR_CFG);

// The fields of CONFIG that the stream's code depends on. U55, U65: MACs, stream version, SHRAM size, custom
// DMA, product. U85: MACs, stream version, SRAM and EXT ports, custom DMA, product.
constexpr std::uint32_t config_mask_u55_u65 = 0xF800FFFF;
constexpr std::uint32_t config_mask_u85 = 0xF80007FF;

struct StatusError {
  std::uint32_t bit;
  Code code;
};
constexpr StatusError status_errors[] = {
    {status::bus_status, Code::bus_status},     {status::cmd_parse_error, Code::cmd_parse_error},
    {status::wd_fault, Code::wd_fault},         {status::ecc_fault, Code::ecc_fault},
    {status::branch_fault, Code::branch_fault},
};

// An address as a register pair; the U55 has no upper half.
void write_address(std::uint32_t offset, const void* pointer, Product product) {
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(pointer);
  hal::npu_write(offset, static_cast<std::uint32_t>(address));
  if (product != Product::u55) {
    hal::npu_write(offset + 4, static_cast<std::uint32_t>(address >> 32));
  }
}

Result check_alignment(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  return address % stream_alignment == 0
             ? Result{}
             : Result{Code::job_misaligned, static_cast<std::uint32_t>(address), stream_alignment};
}

}  // namespace

Result Driver::open(MemoryMode mode) {
  identity_ = {hal::npu_read(ID), hal::npu_read(CONFIG)};
  if (identity_.id == 0 || identity_.id == UINT32_MAX) {
    return {Code::npu_absent, identity_.id, identity_.config};
  }
  const std::uint32_t product = identity_.config >> 28;
  if (product > static_cast<std::uint32_t>(Product::u85)) {
    return {Code::unknown_product, identity_.config};
  }
  product_ = static_cast<Product>(product);
  settings_ = settings_for(product_, mode);
  pmu_ = product_ == Product::u85 ? pmu_u85 : pmu_u55_u65;
  if (const Result result = reset(); !result.ok()) {
    return result;
  }
  hal::npu_interrupt_enable(on_interrupt, this);
  return select_events(nullptr, 0);
}

// A write to RESET starts a soft reset and sets the security state that the NPU comes back with.
Result Driver::reset() {
  hal::npu_write(RESET, prot::privileged_secure);
  std::uint32_t polls = 0;
  while ((hal::npu_read(STATUS) & status::reset_status) != 0) {
    if (++polls == reset_polls) {
      return {Code::reset_timeout, hal::npu_read(STATUS), reset_polls};
    }
  }
  if (const std::uint32_t found = hal::npu_read(PROT); found != prot::privileged_secure) {
    return {Code::wrong_protection, found, prot::privileged_secure};
  }
  // Both Q-channel bits clear: the NPU refuses to be clock-gated or powered down, so that its settings and
  // counters last from job to job.
  hal::npu_write(CMD, 0);
  for (std::uint32_t i = 0; i < axi_limit_count; ++i) {
    hal::npu_write(AXI_LIMIT_or_MEM_ATTR + 4 * i, settings_.AXI_LIMIT_or_MEM_ATTR[i]);
  }
  if (product_ == Product::u85) {
    hal::npu_write(AXI_SRAM, settings_.AXI_SRAM);
    hal::npu_write(AXI_EXT, settings_.AXI_EXT);
  }
  hal::npu_write(QCONFIG, settings_.QCONFIG);
  hal::npu_write(REGIONCFG, settings_.REGIONCFG);
  return {};
}

Result Driver::check_stream(std::uint32_t config_word, std::uint32_t arch_word) const {
  const std::uint32_t mask = product_ == Product::u85 ? config_mask_u85 : config_mask_u55_u65;
  if ((identity_.config & mask) != (config_word & mask)) {
    return {Code::config_mismatch, identity_.config, config_word};
  }
  const auto major = [](std::uint32_t id) { return id >> 28; };
  const auto minor = [](std::uint32_t id) { return (id >> 20) & 0xFF; };
  if (major(identity_.id) != major(arch_word) || minor(identity_.id) < minor(arch_word)) {
    return {Code::arch_mismatch, identity_.id, arch_word};
  }
  return {};
}

Result Driver::select_events(const std::uint16_t* events, std::uint32_t count) {
  if (count > pmu_.event_counters) {
    return {Code::too_many_events, count, pmu_.event_counters};
  }
  if (count == 0) {
    const bool u85 = product_ == Product::u85;
    events = u85 ? default_events_u85 : default_events_u55_u65;
    count = u85 ? sizeof default_events_u85 / sizeof *default_events_u85
                : sizeof default_events_u55_u65 / sizeof *default_events_u55_u65;
  }
  event_count_ = count;
  for (std::uint32_t i = 0; i < count; ++i) {
    events_[i] = events[i];
  }
  return {};
}

Result Driver::run(const Job& job, std::uint32_t timeout_ms, Counters& counters) {
  hal::mark_driver_start();
  if (const Result result = check_stream(job.config_word, job.arch_word); !result.ok()) {
    return result;
  }
  if (const Result result = check_alignment(job.command_stream); !result.ok()) {
    return result;
  }
  for (std::uint32_t region = 0; region < job.region_count; ++region) {
    if (const Result result = check_alignment(job.bases[region]); !result.ok()) {
      return result;
    }
  }
  program(job);
  start_counters();
  done_ = false;
  hal::npu_memory_barrier();
  hal::mark_wait();
  hal::npu_write(CMD, cmd::transition_to_running_state);
  const Result result = wait(timeout_ms);
  hal::mark_driver_stop();
  hal::npu_memory_barrier();
  stop_counters(counters);
  if (!result.ok()) {
    // A second error, of the reset itself, would only hide the first; the next job meets it again.
    static_cast<void>(reset());
  }
  return result;
}

void Driver::program(const Job& job) {
  write_address(QBASE, job.command_stream, product_);
  hal::npu_write(QSIZE, job.command_bytes);
  for (std::uint32_t region = 0; region < job.region_count; ++region) {
    write_address(BASEP + region * static_cast<std::uint32_t>(sizeof(Address)), job.bases[region], product_);
  }
}

// The cycle counter runs from NPU_ACTIVE to NPU_IDLE, as in ExecuTorch's runner: a free-running one would
// count the processor's way to CMD and back from the interrupt as well.
void Driver::start_counters() {
  constexpr std::uint32_t active_to_idle = event::NPU_ACTIVE | std::uint32_t{event::NPU_IDLE} << 16;
  const std::uint32_t enabled = pm_cycle_counter | ((1U << event_count_) - 1);
  hal::npu_write(pmu_.block + PMCR, pmcr::cnt_en | pmcr::event_cnt_rst | pmcr::cycle_cnt_rst);
  hal::npu_write(pmu_.block + PMOVSCLR, UINT32_MAX);
  hal::npu_write(pmu_.block + PMCCNTR_CFG, active_to_idle);
  for (std::uint32_t i = 0; i < event_count_; ++i) {
    hal::npu_write(pmu_.PMEVTYPER + 4 * i, events_[i]);
  }
  hal::npu_write(pmu_.block + PMCNTENSET, enabled);
}

void Driver::stop_counters(Counters& counters) {
  hal::npu_write(pmu_.block + PMCNTENCLR, UINT32_MAX);  // from here on all values stand still
  const std::uint64_t high = hal::npu_read(pmu_.block + PMCCNTR + 4) & 0xFFFF;
  counters.cycles = high << 32 | hal::npu_read(pmu_.block + PMCCNTR);
  counters.overflow = hal::npu_read(pmu_.block + PMOVSSET);
  counters.count = event_count_;
  for (std::uint32_t i = 0; i < event_count_; ++i) {
    counters.events[i] = {events_[i], hal::npu_read(pmu_.PMEVCNTR + 4 * i)};
  }
}

Result Driver::wait(std::uint32_t timeout_ms) {
  const std::uint32_t start = hal::clock_ms();
  while (!done_) {
    if (hal::clock_ms() - start > timeout_ms) {
      return {Code::job_timeout, hal::npu_read(STATUS), hal::npu_read(QREAD)};
    }
    hal::sleep_unless(done_);
  }
  for (const StatusError& error : status_errors) {
    if ((final_status_ & error.bit) != 0) {
      return {error.code, final_status_, hal::npu_read(QREAD)};
    }
  }
  if ((final_status_ & status::cmd_end_reached) == 0) {
    return {Code::cmd_end_not_reached, final_status_, hal::npu_read(QREAD)};
  }
  return {};
}

void Driver::on_interrupt(void* context) {
  Driver& driver = *static_cast<Driver*>(context);
  const std::uint32_t status = hal::npu_read(STATUS);
  if ((status & status::irq_raised) == 0) {
    return;  // left over from a job that was reset
  }
  hal::npu_write(CMD, cmd::clear_irq);
  driver.final_status_ = status;
  driver.done_ = true;
}

}  // namespace ethosu_sdk::npu
