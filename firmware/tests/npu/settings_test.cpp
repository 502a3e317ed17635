// Register settings per product and memory mode, as whole words. Sources: the defaults of Arm's
// ethos-u-core-driver (ethosu_config_u55.h, _u65.h, _u85.h) and, for Sram_Only and Dedicated_Sram,
// ExecuTorch's corstone_utils.cmake.
#include "npu/settings.hpp"

#include <initializer_list>

#include "tests/support/check.hpp"

namespace {

using namespace ethosu_sdk;
using npu::MemoryMode;
using npu::Product;

struct Row {
  Product product;
  MemoryMode mode;
  std::uint32_t QCONFIG;
  std::uint32_t REGIONCFG;
};

// Weights are region 0 (bits 1:0), the scratch region 1 (3:2), the fast scratch region 2 (5:4).
constexpr Row rows[] = {
    {Product::u55, MemoryMode::shared_sram, 2, 0x13},    {Product::u65, MemoryMode::shared_sram, 2, 0x1B},
    {Product::u85, MemoryMode::shared_sram, 2, 0x13},    {Product::u55, MemoryMode::sram_only, 1, 0x01},
    {Product::u65, MemoryMode::sram_only, 1, 0x01},      {Product::u85, MemoryMode::sram_only, 1, 0x01},
    {Product::u65, MemoryMode::dedicated_sram, 3, 0x0F}, {Product::u85, MemoryMode::dedicated_sram, 3, 0x0F},
};

void regions_go_where_the_memory_mode_has_them() {
  for (const Row& row : rows) {
    const npu::Settings settings = npu::settings_for(row.product, row.mode);
    CHECK(settings.QCONFIG == row.QCONFIG);
    CHECK(settings.REGIONCFG == row.REGIONCFG);
  }
}

void axi_limits_are_the_drivers() {
  for (const std::uint32_t limit :
       npu::settings_for(Product::u55, MemoryMode::shared_sram).AXI_LIMIT_or_MEM_ATTR) {
    CHECK(limit == 0x0F1F0000);  // 32 reads, 16 writes
  }
  for (const std::uint32_t limit :
       npu::settings_for(Product::u65, MemoryMode::sram_only).AXI_LIMIT_or_MEM_ATTR) {
    CHECK(limit == 0x1F3F0000);  // 64 reads, 32 writes
  }
}

void ethos_u85_has_its_first_two_attributes_on_the_sram_ports() {
  constexpr std::uint32_t attributes[] = {0, 0, 4, 4};
  for (const MemoryMode mode : {MemoryMode::sram_only, MemoryMode::shared_sram, MemoryMode::dedicated_sram}) {
    const npu::Settings settings = npu::settings_for(Product::u85, mode);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(settings.AXI_LIMIT_or_MEM_ATTR[i] == attributes[i]);
    }
    CHECK(settings.AXI_SRAM == 0x00020F0B);
    CHECK(settings.AXI_EXT == 0x00021F3F);
  }
}

}  // namespace

int main() {
  regions_go_where_the_memory_mode_has_them();
  axi_limits_are_the_drivers();
  ethos_u85_has_its_first_two_attributes_on_the_sram_ports();
  return host::failed_checks == 0 ? 0 : 1;
}
