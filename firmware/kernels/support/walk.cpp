#include "kernels/support/walk.hpp"

namespace ethosu_sdk::kernels {
namespace {

// Whether one step of the loop with `outer` strides is a whole inner loop in every view.
bool follows(const View* const* views, std::size_t count, const std::size_t* outer, std::size_t dim) {
  const auto size = static_cast<std::size_t>(views[0]->sizes[dim]);
  for (std::size_t n = 0; n < count; ++n) {
    if (outer[n] != views[n]->strides[dim] * size) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::size_t plan_loops(const View* const* views, std::size_t count, std::size_t* sizes,
                       std::size_t* strides) {
  const View& first = *views[0];
  if (!has_indices(first.sizes, first.rank)) {
    return 0;
  }
  std::size_t depth = 0;
  for (std::size_t dim = 0; dim < first.rank; ++dim) {
    const auto size = static_cast<std::size_t>(first.sizes[dim]);
    if (size == 1) {
      continue;
    }
    if (depth > 0 && follows(views, count, strides + (depth - 1) * count, dim)) {
      sizes[depth - 1] *= size;
    } else {
      sizes[depth++] = size;
    }
    for (std::size_t n = 0; n < count; ++n) {
      strides[(depth - 1) * count + n] = views[n]->strides[dim];
    }
  }
  if (depth > 0) {
    return depth;
  }
  sizes[0] = 1;
  for (std::size_t n = 0; n < count; ++n) {
    strides[n] = 0;
  }
  return 1;
}

}  // namespace ethosu_sdk::kernels
