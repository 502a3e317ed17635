// Visits the elements of several tensors together, whatever their layouts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/layout.hpp"

namespace ethosu_sdk::kernels {

// Calls `function(offsets)` for every index tuple of `sizes`, the last dimension fastest; offsets[n] is the
// element offset by strides[n].
template <std::size_t Operands, typename Function>
void walk(const std::int32_t* sizes, std::size_t rank, const Strides (&strides)[Operands],
          Function&& function) {
  for (std::size_t dim = 0; dim < rank; ++dim) {
    if (sizes[dim] == 0) {
      return;
    }
  }
  std::int32_t index[max_rank] = {};
  std::size_t offsets[Operands] = {};
  while (true) {
    function(offsets);
    std::size_t dim = rank;
    while (dim-- > 0) {
      for (std::size_t n = 0; n < Operands; ++n) {
        offsets[n] += strides[n].of[dim];
      }
      if (++index[dim] < sizes[dim]) {
        break;
      }
      for (std::size_t n = 0; n < Operands; ++n) {
        offsets[n] -= strides[n].of[dim] * static_cast<std::size_t>(sizes[dim]);
      }
      index[dim] = 0;
    }
    if (dim == static_cast<std::size_t>(-1)) {
      return;
    }
  }
}

// Calls `function(index)` for every index tuple of `sizes`, the last dimension fastest.
template <typename Function>
void walk_indices(const std::int32_t* sizes, std::size_t rank, Function&& function) {
  std::int32_t index[max_rank] = {};
  const Strides strides[1];
  walk(sizes, rank, strides, [&](const std::size_t(&)[1]) {
    function(static_cast<const std::int32_t*>(index));
    for (std::size_t dim = rank; dim-- > 0;) {
      if (++index[dim] < sizes[dim]) {
        return;
      }
      index[dim] = 0;
    }
  });
}

// The element at an index tuple.
inline std::size_t offset_of(const std::int32_t* index, const Strides& strides, std::size_t rank) {
  std::size_t offset = 0;
  for (std::size_t dim = 0; dim < rank; ++dim) {
    offset += static_cast<std::size_t>(index[dim]) * strides.of[dim];
  }
  return offset;
}

}  // namespace ethosu_sdk::kernels
