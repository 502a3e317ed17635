// Visits the elements of several tensors together, whatever their layouts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/layout.hpp"

namespace ethosu_sdk::kernels {

// Calls `function(offsets)` for every index tuple of the first view's sizes, the last dimension fastest;
// offsets[n] is the element of views[n], which is large enough for them.
template <std::size_t Count, typename Function>
void walk(const View* const (&views)[Count], Function&& function) {
  const std::int32_t* const sizes = views[0]->sizes;
  const std::size_t rank = views[0]->rank;
  if (!has_indices(sizes, rank)) {
    return;
  }
  std::int32_t index[max_rank] = {};
  std::size_t offsets[Count];
  for (std::size_t n = 0; n < Count; ++n) {
    offsets[n] = views[n]->first;
  }
  while (true) {
    function(offsets);
    std::size_t dim = rank;
    while (dim-- > 0) {
      for (std::size_t n = 0; n < Count; ++n) {
        offsets[n] += views[n]->strides[dim];
      }
      if (++index[dim] < sizes[dim]) {
        break;
      }
      for (std::size_t n = 0; n < Count; ++n) {
        offsets[n] -= views[n]->strides[dim] * static_cast<std::size_t>(sizes[dim]);
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
  if (!has_indices(sizes, rank)) {
    return;
  }
  std::int32_t index[max_rank] = {};
  std::size_t dim = 0;
  do {
    function(static_cast<const std::int32_t*>(index));
    dim = rank;
    while (dim > 0 && ++index[dim - 1] == sizes[dim - 1]) {
      index[--dim] = 0;
    }
  } while (dim > 0);
}

// Calls `function(offset in the first view, in the second)` for each plane of their last two dimensions.
template <typename Function>
void for_each_plane(const View& input, const View& output, Function&& function) {
  View planes = input;
  planes.rank -= 2;
  walk({&planes, &output}, [&](const std::size_t(&at)[2]) { function(at[0], at[1]); });
}

}  // namespace ethosu_sdk::kernels
