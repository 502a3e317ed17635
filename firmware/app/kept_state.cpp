#include "app/kept_state.hpp"

#include <cstring>

#include "app/crc32.hpp"

namespace ethosu_sdk::app {
namespace {

// Nothing for a tensor that does not lie in its buffer.
Span<std::uint8_t> memory_of(const StateTensor& tensor, KeptState::Planned planned) {
  if (tensor.buffer >= planned.size()) {
    return {};
  }
  const Span<std::uint8_t> buffer = planned[tensor.buffer];
  if (tensor.offset > buffer.size() || tensor.bytes > buffer.size() - tensor.offset) {
    return {};
  }
  return {buffer.data() + tensor.offset, tensor.bytes};
}

}  // namespace

bool KeptState::begin(Planned planned, Failure& failure) {
  for (std::uint32_t i = 0; i < sequence_.states(); ++i) {
    const StateTensor tensor = sequence_.state(i);
    const Span<std::uint8_t> memory = memory_of(tensor, planned);
    if (memory.data() == nullptr) {
      return failure.say("inputs", "wrong_state", "tensor ", i,
                         " of the state lies outside of its planned buffer");
    }
    if (!tensor.initial.empty()) {
      std::memcpy(memory.data(), tensor.initial.data(), tensor.initial.size());
    }
  }
  return true;
}

void KeptState::report(Planned planned, std::uint32_t inference, bool whole) {
  for (std::uint32_t i = 0; i < sequence_.states(); ++i) {
    const Span<std::uint8_t> memory = memory_of(sequence_.state(i), planned);
    records_.write(protocol::state, inference, i, memory.size(),
                   Crc32Digits{crc32(memory.data(), memory.size())});
    for (std::size_t offset = 0; whole && offset < memory.size(); offset += protocol::data_chunk_bytes) {
      const std::size_t left = memory.size() - offset;
      const std::size_t chunk = left < protocol::data_chunk_bytes ? left : protocol::data_chunk_bytes;
      records_.write(protocol::state_data, i, offset, Base64{{memory.data() + offset, chunk}});
    }
  }
}

}  // namespace ethosu_sdk::app
