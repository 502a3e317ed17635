// An Ethos-U delegate's payload, as ExecuTorch 1.5.1 stores Vela 5.1.0's result: a chain of blocks, each a
// 16-byte name, a size, an external flag, padding to 32 bytes, and data padded to 16 bytes. The data of an
// external block is the key of what it stands for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "npu/result.hpp"

namespace ethosu_sdk::npu {

// An input or output: `bytes` at `offset` of the region's buffer.
struct Slot {
  std::uint32_t offset;
  std::uint32_t bytes;
  std::uint32_t region;
};

struct SlotTable {
  const std::uint8_t* entries = nullptr;  // validated by parse_payload()
  std::uint32_t count = 0;

  Slot at(std::uint32_t index) const;  // index < count
};

// Views into the payload and its external blocks, which must outlive it.
struct Payload {
  const std::uint8_t* command_stream = nullptr;  // behind the COP1 header
  std::uint32_t command_bytes = 0;
  std::uint32_t config_word = 0;  // the CONFIG and ID registers that the stream was built for
  std::uint32_t arch_word = 0;
  const std::uint8_t* weights = nullptr;
  std::uint32_t weight_bytes = 0;
  std::uint32_t scratch_bytes = 0;
  SlotTable inputs;
  SlotTable outputs;
};

constexpr std::size_t payload_alignment = 16;  // of command stream and weights: the NPU reads 16-byte beats
constexpr std::uint32_t scratch_region = 1;

// Where the data of external blocks is: `find` tells whether there is any under a key, and where.
struct BlockSource {
  bool (*find)(const void* context, const char* key, const std::uint8_t*& data, std::size_t& size) = nullptr;
  const void* context = nullptr;
};

// Checks every offset against `size`, and every slot against the scratch size. Without a source, payloads
// that have external blocks are refused.
Result parse_payload(const std::uint8_t* data, std::size_t size, Payload& payload,
                     const BlockSource& source = {});

}  // namespace ethosu_sdk::npu
