// The Ethos-U register window. Names and offsets: Arm Ethos-U55/U65/U85 technical reference manuals, and the
// register headers inside ethos-u-vela 5.1.0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "npu/products.hpp"

namespace ethosu_sdk::npu {

constexpr std::size_t base_pointer_count = 8;
constexpr std::size_t axi_limit_count = 4;

struct Address {
  std::uint32_t LO;
  std::uint32_t HI;
};

// What all families share. At 0x40 U55 and U65 have AXI_LIMIT0-3, U85 has MEM_ATTR0-3.
struct Registers {
  std::uint32_t ID;
  std::uint32_t STATUS;
  std::uint32_t CMD;
  std::uint32_t RESET;
  Address QBASE;
  std::uint32_t QREAD;
  std::uint32_t QCONFIG;
  std::uint32_t QSIZE;
  std::uint32_t PROT;
  std::uint32_t CONFIG;
  std::uint32_t reserved_2C[4];
  std::uint32_t REGIONCFG;
  std::uint32_t AXI_LIMIT_or_MEM_ATTR[axi_limit_count];
  std::uint32_t AXI_SRAM;  // U85
  std::uint32_t AXI_EXT;   // U85
  std::uint32_t reserved_58[10];
  Address BASEP[base_pointer_count];
};
static_assert(offsetof(Registers, ID) == 0x00);
static_assert(offsetof(Registers, STATUS) == 0x04);
static_assert(offsetof(Registers, CMD) == 0x08);
static_assert(offsetof(Registers, RESET) == 0x0C);
static_assert(offsetof(Registers, QBASE) == 0x10);
static_assert(offsetof(Registers, QREAD) == 0x18);
static_assert(offsetof(Registers, QCONFIG) == 0x1C);
static_assert(offsetof(Registers, QSIZE) == 0x20);
static_assert(offsetof(Registers, PROT) == 0x24);
static_assert(offsetof(Registers, CONFIG) == 0x28);
static_assert(offsetof(Registers, REGIONCFG) == 0x3C);
static_assert(offsetof(Registers, AXI_LIMIT_or_MEM_ATTR) == 0x40);
static_assert(offsetof(Registers, AXI_SRAM) == 0x50);
static_assert(offsetof(Registers, AXI_EXT) == 0x54);
static_assert(offsetof(Registers, BASEP) == 0x80);

// The PMU's block, and the two arrays of event counters and types that stand apart from it.
struct PmuRegisters {
  std::uint32_t PMCR;
  std::uint32_t PMCNTENSET;
  std::uint32_t PMCNTENCLR;
  std::uint32_t PMOVSSET;
  std::uint32_t PMOVSCLR;
  std::uint32_t PMINTSET;
  std::uint32_t PMINTCLR;
  std::uint32_t reserved_1C;
  Address PMCCNTR;
  std::uint32_t PMCCNTR_CFG;
  std::uint32_t PMCAXI_CHAN;
};
static_assert(offsetof(PmuRegisters, PMCNTENSET) == 0x04);
static_assert(offsetof(PmuRegisters, PMCNTENCLR) == 0x08);
static_assert(offsetof(PmuRegisters, PMOVSSET) == 0x0C);
static_assert(offsetof(PmuRegisters, PMOVSCLR) == 0x10);
static_assert(offsetof(PmuRegisters, PMCCNTR) == 0x20);
static_assert(offsetof(PmuRegisters, PMCCNTR_CFG) == 0x28);
static_assert(offsetof(PmuRegisters, PMCAXI_CHAN) == 0x2C);

struct PmuLayout {
  std::uint32_t block;
  std::uint32_t PMEVCNTR;
  std::uint32_t PMEVTYPER;
  std::uint32_t event_counters;
};
constexpr PmuLayout pmu_u55_u65{0x0180, 0x0300, 0x0380, event_counters_u55_u65};
constexpr PmuLayout pmu_u85{0x1180, 0x1300, 0x1380, event_counters_u85};

namespace status {
constexpr std::uint32_t state_running = 1U << 0;
constexpr std::uint32_t irq_raised = 1U << 1;
constexpr std::uint32_t bus_status = 1U << 2;
constexpr std::uint32_t reset_status = 1U << 3;
constexpr std::uint32_t cmd_parse_error = 1U << 4;
constexpr std::uint32_t cmd_end_reached = 1U << 5;
constexpr std::uint32_t wd_fault = 1U << 7;  // U55, U65
constexpr std::uint32_t ecc_fault = 1U << 8;
constexpr std::uint32_t branch_fault = 1U << 9;  // U85
}  // namespace status

namespace cmd {
constexpr std::uint32_t transition_to_running_state = 1U << 0;
constexpr std::uint32_t clear_irq = 1U << 1;
constexpr std::uint32_t clock_q_enable = 1U << 2;
constexpr std::uint32_t power_q_enable = 1U << 3;
}  // namespace cmd

namespace prot {
constexpr std::uint32_t privileged_secure = 1;  // CPL (bit 0) privileged, CSL (bit 1) Secure; RESET alike
}

namespace pmcr {
constexpr std::uint32_t cnt_en = 1U << 0;
constexpr std::uint32_t event_cnt_rst = 1U << 1;
constexpr std::uint32_t cycle_cnt_rst = 1U << 2;
}  // namespace pmcr

constexpr std::uint32_t pm_cycle_counter = 1U << 31;  // in PMCNTEN*, PMOVS*

namespace event {
constexpr std::uint16_t NPU_IDLE = 0x20;
constexpr std::uint16_t NPU_ACTIVE = 0x23;
}  // namespace event

}  // namespace ethosu_sdk::npu
