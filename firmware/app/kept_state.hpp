// The tensors that a program keeps from one inference to the next: what they begin with, and what is in them.
#pragma once

#include <cstdint>

#include "app/failure.hpp"
#include "app/record_writer.hpp"
#include "app/sequence.hpp"

namespace ethosu_sdk::app {

class KeptState {
 public:
  using Planned = Span<const Span<std::uint8_t>>;  // the planned buffers of a method

  KeptState(const Sequence& sequence, RecordWriter& records) : sequence_(sequence), records_(records) {}

  // Writes the values that the image brings. False, with the reason, for a tensor outside of its buffer.
  bool begin(Planned planned, Failure& failure);
  // The CRC of each tensor after an inference, and all its bytes if `whole`.
  void report(Planned planned, std::uint32_t inference, bool whole);

 private:
  const Sequence& sequence_;
  RecordWriter& records_;
};

}  // namespace ethosu_sdk::app
