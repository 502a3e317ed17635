// What must be known of a program before Method::load(), for who makes room for it at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/kernel_api.hpp"

namespace ethosu_sdk::runtime {

constexpr std::size_t max_planned_buffers = 16;

struct ProgramFacts {
  const char* method = nullptr;                         // "forward", or else the program's first
  std::size_t planned_bytes[max_planned_buffers] = {};  // [i] is the planned buffer with memory_id i + 1
  std::size_t planned_count = 0;
  std::uint32_t delegate_count = 0;
};

// Told of every delegate of the method, in their order.
class DelegateReader {
 public:
  // `compile_flags` is the value that ExecuTorch stores under that key: Vela's flags, not ended by NUL; empty
  // when the delegate has none. A failure ends the reading.
  virtual Status on_delegate(std::uint32_t index, Span<const std::uint8_t> payload,
                             Span<const std::uint8_t> compile_flags) = 0;

 protected:
  ~DelegateReader() = default;
};

// Verifies the program at `pte`, which is aligned to `memory_alignment`. A failure of its own is explained in
// `reason`.
Status read_facts(Span<const std::uint8_t> pte, ProgramFacts& facts, DelegateReader& reader,
                  ErrorText& reason);

}  // namespace ethosu_sdk::runtime
