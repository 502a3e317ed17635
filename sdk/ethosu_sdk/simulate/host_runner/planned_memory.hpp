// The memory of planned tensors in the runner.
#pragma once

#include <executorch/runtime/core/span.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

// Planned buffers are aligned as the firmware's are; ExecuTorch plans tensors at multiples of 16.
constexpr std::size_t kAlignment = 64;

// Owns the memory that planned tensors live in: that of a method, or one that several methods share.
class PlannedMemory {
 public:
  PlannedMemory() = default;
  ~PlannedMemory() {
    for (const auto& span : spans_) ::operator delete (span.data(), std::align_val_t{kAlignment});
  }
  PlannedMemory(const PlannedMemory&) = delete;
  PlannedMemory& operator=(const PlannedMemory&) = delete;

  void allocate(const std::vector<std::size_t>& sizes) {
    for (const std::size_t size : sizes) {
      const std::size_t taken = size == 0 ? kAlignment : size;
      auto* data = static_cast<std::uint8_t*>(::operator new (taken, std::align_val_t{kAlignment}));
      std::memset(data, 0, taken);  // as on the board
      spans_.push_back({data, size});
    }
  }

  // Where `size` bytes at `offset` of buffer `arena` are; nullptr: not in it.
  std::uint8_t* find(std::size_t arena, std::size_t offset, std::size_t size) {
    const bool fits =
        arena < spans_.size() && offset <= spans_[arena].size() && size <= spans_[arena].size() - offset;
    return fits ? spans_[arena].data() + offset : nullptr;
  }
  executorch::runtime::Span<executorch::runtime::Span<std::uint8_t>> spans() {
    return {spans_.data(), spans_.size()};
  }

 private:
  std::vector<executorch::runtime::Span<std::uint8_t>> spans_;
};
