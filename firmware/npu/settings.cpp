#include "npu/settings.hpp"

namespace ethosu_sdk::npu {
namespace {

// Regions 0 (weights), 1 (scratch), 2 (fast scratch); Vela uses no others.
struct Routes {
  std::uint32_t command_queue;
  std::uint32_t region[3];
};

// ExecuTorch's corstone_utils.cmake; with Shared_Sram it leaves the Ethos-U core driver's defaults.
constexpr Routes sram_only{1, {1, 0, 0}};
constexpr Routes dedicated_sram{3, {3, 3, 0}};
constexpr Routes shared_sram{2, {3, 0, 1}};
constexpr Routes shared_sram_u65{2, {3, 2, 1}};

// The Ethos-U core driver's defaults: outstanding reads and writes of 32/16 (U55) and 64/32 (U65).
constexpr std::uint32_t axi_limit(std::uint32_t reads, std::uint32_t writes) {
  constexpr std::uint32_t max_beats_64_bytes = 0;
  return max_beats_64_bytes | (reads - 1) << 16 | (writes - 1) << 24;
}
static_assert(axi_limit(32, 16) == 0x0F1F0000);

constexpr std::uint32_t axi_port(std::uint32_t reads, std::uint32_t writes) {
  constexpr std::uint32_t max_beats_256_bytes = 2;
  return (reads - 1) | (writes - 1) << 8 | max_beats_256_bytes << 16;
}
static_assert(axi_port(64, 32) == 0x00021F3F);

constexpr std::uint32_t mem_attr_sram = 0;
constexpr std::uint32_t mem_attr_ext = 1U << 2;

const Routes& routes_for(Product product, MemoryMode mode) {
  switch (mode) {
    case MemoryMode::sram_only:
      return sram_only;
    case MemoryMode::dedicated_sram:
      return dedicated_sram;
    case MemoryMode::shared_sram:
      break;
  }
  return product == Product::u65 ? shared_sram_u65 : shared_sram;
}

}  // namespace

Settings settings_for(Product product, MemoryMode mode) {
  const Routes& routes = routes_for(product, mode);
  Settings settings{};
  settings.QCONFIG = routes.command_queue;
  settings.REGIONCFG = routes.region[0] | routes.region[1] << 2 | routes.region[2] << 4;
  if (product == Product::u85) {
    const std::uint32_t attributes[] = {mem_attr_sram, mem_attr_sram, mem_attr_ext, mem_attr_ext};
    for (std::size_t i = 0; i < axi_limit_count; ++i) {
      settings.AXI_LIMIT_or_MEM_ATTR[i] = attributes[i];
    }
    settings.AXI_SRAM = axi_port(12, 16);
    settings.AXI_EXT = axi_port(64, 32);
    return settings;
  }
  for (std::uint32_t& limit : settings.AXI_LIMIT_or_MEM_ATTR) {
    limit = product == Product::u65 ? axi_limit(64, 32) : axi_limit(32, 16);
  }
  return settings;
}

}  // namespace ethosu_sdk::npu
