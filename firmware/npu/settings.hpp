// Where each region's traffic goes, per family and memory mode.
#pragma once

#include <cstdint>

#include "npu/products.hpp"
#include "npu/registers.hpp"

namespace ethosu_sdk::npu {

enum class MemoryMode : std::uint8_t { sram_only, shared_sram, dedicated_sram };

// QCONFIG and REGIONCFG select one of four AXI_LIMIT (U55, U65: 0 and 1 port AXI0, 2 and 3 port AXI1) or
// MEM_ATTR (U85) settings.
struct Settings {
  std::uint32_t QCONFIG;
  std::uint32_t REGIONCFG;
  std::uint32_t AXI_LIMIT_or_MEM_ATTR[axi_limit_count];
  std::uint32_t AXI_SRAM;  // U85
  std::uint32_t AXI_EXT;   // U85
};

Settings settings_for(Product product, MemoryMode mode);

}  // namespace ethosu_sdk::npu
