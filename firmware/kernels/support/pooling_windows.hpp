// Windows of two-dimensional pooling: their arguments, and a loop over them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/arguments.hpp"
#include "kernels/support/layout.hpp"
#include "kernels/support/spatial.hpp"

namespace ethosu_sdk::kernels {

struct PoolGeometry {
  SpatialAxis height;
  SpatialAxis width;
};

struct PoolParameters {
  std::int64_t kernel[2] = {1, 1};
  std::int64_t stride[2] = {1, 1};
  std::int64_t padding[2] = {0, 0};
  std::int64_t dilation[2] = {1, 1};
  bool ceil_mode = false;
};

// A list of two integers, of one for both, or of none for what `pair` has.
void read_pool_pair(Arguments& arguments, std::size_t index, std::int64_t minimum, std::int64_t (&pair)[2]);

// Parameters 1 to 3 of all operators: kernel_size, stride (empty: as the kernel), padding.
PoolParameters read_pool_parameters(Arguments& arguments);

// Checks the input's shape and gives `output` the result's. Dimension `first` and the next are pooled.
PoolGeometry fit_pool(Arguments& arguments, const Tensor& input, const PoolParameters& parameters,
                      std::size_t first, Tensor& output);

// The last two dimensions are pooled.
inline PoolGeometry fit_planes(Arguments& arguments, const Tensor& input, const PoolParameters& parameters,
                               Tensor& output) {
  return fit_pool(arguments, input, parameters, input.rank < 2 ? 0 : input.rank - 2u, output);
}

// The part of a window that lies on the input: `count` elements from `first`, `step` apart.
struct PoolRange {
  std::int64_t first;
  std::int64_t count;
};

// Inline, as the next: once for each window and dimension, a call costs as much as some elements.
inline PoolRange inside(const SpatialAxis& axis, std::int64_t position) {
  const std::int64_t start = axis.start(position);
  const std::int64_t skipped = start < 0 ? (-start + axis.dilation - 1) / axis.dilation : 0;
  const std::int64_t first = start + skipped * axis.dilation;
  if (first >= axis.input || skipped >= axis.kernel) {
    return {0, 0};
  }
  const std::int64_t room = axis.input - first;
  const std::int64_t reach = axis.dilation == 1 ? room : (room - 1) / axis.dilation + 1;  // division is slow
  const std::int64_t left = axis.kernel - skipped;
  return {first, reach < left ? reach : left};
}

// How many elements a window has when padding counts: it is cut at the end of the padding.
inline std::int64_t padded_count(const SpatialAxis& axis, std::int64_t position) {
  const std::int64_t start = axis.start(position);
  const std::int64_t end = start + axis.kernel;
  const std::int64_t limit = axis.input + axis.padding;
  return (end < limit ? end : limit) - start;
}

// One plane's windows in memory order. `Window::add(value, index in the plane)` gets each window's elements
// row by row, from the state `empty` on, then `finish(window, element count, offset in the output plane)` is
// called.
template <typename T, typename Window, typename Finish>
void pool_plane(const T* plane, const PoolGeometry& geometry, const View& from, const View& to,
                bool count_padding, const Window& empty, Finish&& finish) {
  const std::size_t column_step =
      static_cast<std::size_t>(geometry.width.dilation) * from.strides[from.rank - 1];
  for (std::int64_t y = 0; y < geometry.height.output; ++y) {
    const PoolRange rows = inside(geometry.height, y);
    for (std::int64_t x = 0; x < geometry.width.output; ++x) {
      const PoolRange columns = inside(geometry.width, x);
      Window window = empty;
      for (std::int64_t i = 0; i < rows.count; ++i) {
        const std::int64_t row = rows.first + i * geometry.height.dilation;
        std::size_t at =
            from.in_plane(static_cast<std::size_t>(row), static_cast<std::size_t>(columns.first));
        std::int64_t index = row * geometry.width.input + columns.first;
        for (auto j = static_cast<std::size_t>(columns.count); j > 0; --j) {
          window.add(plane[at], index);
          at += column_step;
          index += geometry.width.dilation;
        }
      }
      const std::int64_t count = count_padding
                                     ? padded_count(geometry.height, y) * padded_count(geometry.width, x)
                                     : rows.count * columns.count;
      finish(window, count, to.in_plane(static_cast<std::size_t>(y), static_cast<std::size_t>(x)));
    }
  }
}

}  // namespace ethosu_sdk::kernels
