// Operators that only move elements by strides: aten::transpose_copy, t_copy, flip, repeat, as_strided_copy,
// diagonal_copy, unfold_copy, pixel_shuffle and pixel_unshuffle.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/kernels.hpp"
#include "kernels/support/copy.hpp"
#include "kernels/support/walk.hpp"

namespace ethosu_sdk::kernels {
namespace {

Status copy_transposed(Arguments& arguments, const Tensor& input, std::size_t left, std::size_t right,
                       Tensor& output) {
  if (!arguments.ok()) {
    return arguments.status();
  }
  View transposed = view_of(input);
  std::swap(transposed.sizes[left], transposed.sizes[right]);
  std::swap(transposed.strides[left], transposed.strides[right]);
  return copy_view(arguments, input, transposed, output);
}

// Reads sizes or strides, none negative, that fit 32 bits.
std::size_t read_counts(Arguments& arguments, std::size_t index, std::int32_t (&counts)[max_rank]) {
  std::int64_t items[max_rank];
  const std::size_t count = arguments.integers(index, items, max_rank);
  for (std::size_t i = 0; i < count; ++i) {
    if (items[i] < 0 || items[i] > 0x7FFFFFFF) {
      arguments.fail(Status::invalid_argument, "item ", i, " of argument ", index, " is ", items[i]);
      return 0;
    }
    counts[i] = static_cast<std::int32_t>(items[i]);
  }
  return count;
}

// The two layouts that pixel_shuffle copies between, in six dimensions: images, channels, rows and columns
// inside a pixel, rows, columns. `fine` has the larger planes.
struct Pixels {
  View coarse;
  View fine;

  void append(std::int32_t size, std::size_t coarse_stride, std::size_t fine_stride) {
    coarse.append(size, coarse_stride);
    fine.append(size, fine_stride);
  }
};

Pixels pixels_of(const Tensor& coarse, std::int32_t factor) {
  const std::size_t rank = coarse.rank;
  std::int32_t images = 1;
  for (std::size_t i = 0; i + 3 < rank; ++i) {
    images *= coarse.sizes[i];
  }
  const std::int32_t channels = coarse.sizes[rank - 3] / factor / factor;
  const std::int32_t height = coarse.sizes[rank - 2];
  const auto columns = static_cast<std::size_t>(coarse.sizes[rank - 1]);
  const auto plane = static_cast<std::size_t>(height) * columns;
  const auto scale = static_cast<std::size_t>(factor);
  const std::size_t channel = scale * scale * plane;
  const auto image = static_cast<std::size_t>(channels) * channel;
  const std::size_t row = columns * scale;
  Pixels pixels;
  pixels.append(images, image, image);
  pixels.append(channels, channel, channel);
  pixels.append(factor, scale * plane, row);
  pixels.append(factor, plane, 1);
  pixels.append(height, columns, row * scale);
  pixels.append(coarse.sizes[rank - 1], 1, scale);
  return pixels;
}

std::int32_t read_factor(Arguments& arguments, const Tensor& input) {
  const std::int64_t factor = arguments.integer(1);
  if (!arguments.ok() || input.rank < 3 || factor < 1 || factor > 0x7FFF) {
    arguments.fail(Status::invalid_argument, "a factor of ", factor, " for a tensor of rank ", input.rank);
    return 1;
  }
  arguments.expect_contiguous(input, "the input");
  return static_cast<std::int32_t>(factor);
}

// The shapes of pixel_shuffle's and pixel_unshuffle's results: `sizes` has the input's.
Status shuffle_sizes(Arguments& arguments, std::int32_t* sizes, std::size_t rank, std::int32_t factor) {
  if (sizes[rank - 3] % (factor * factor) != 0) {
    return arguments.fail(Status::invalid_argument, "channels that are not a multiple of ", factor,
                          " squared");
  }
  sizes[rank - 3] /= factor * factor;
  for (std::size_t i = rank - 2; i < rank; ++i) {
    const std::int64_t size = std::int64_t{sizes[i]} * factor;
    if (size > 0x7FFFFFFF) {
      return arguments.fail(Status::shape_mismatch, "size ", i, " of the result is ", size);
    }
    sizes[i] = static_cast<std::int32_t>(size);
  }
  return arguments.status();
}

Status unshuffle_sizes(Arguments& arguments, std::int32_t* sizes, std::size_t rank, std::int32_t factor) {
  if (sizes[rank - 2] % factor != 0 || sizes[rank - 1] % factor != 0) {
    return arguments.fail(Status::invalid_argument, "a plane that is not a multiple of ", factor);
  }
  const std::int64_t channels = std::int64_t{sizes[rank - 3]} * factor * factor;
  if (channels > 0x7FFFFFFF) {
    return arguments.fail(Status::shape_mismatch, channels, " channels");
  }
  sizes[rank - 3] = static_cast<std::int32_t>(channels);
  sizes[rank - 2] /= factor;
  sizes[rank - 1] /= factor;
  return arguments.status();
}

// self, factor, out
Status move_pixels(KernelContext& context, Span<Value* const> values, bool refine) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  const std::int32_t factor = read_factor(arguments, input);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(output, input.dtype, "the output");
  arguments.expect_contiguous(output, "the output");
  if (!arguments.ok()) {
    return arguments.status();
  }
  std::int32_t sizes[max_rank] = {};
  std::copy_n(input.sizes, input.rank, sizes);
  (refine ? shuffle_sizes : unshuffle_sizes)(arguments, sizes, input.rank, factor);
  if (arguments.resize(output, sizes, input.rank) == Status::ok) {
    const Pixels pixels = pixels_of(refine ? input : output, factor);
    copy_elements(input, refine ? pixels.coarse : pixels.fine, output, refine ? pixels.fine : pixels.coarse);
  }
  return arguments.status();
}

}  // namespace

Status transpose_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);
  const Tensor& input = arguments.tensor(0);
  const std::size_t left = arguments.dim(1, input.rank);
  const std::size_t right = arguments.dim(2, input.rank);
  return copy_transposed(arguments, input, left, right, arguments.output(3));
}

Status t_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const Tensor& input = arguments.tensor(0);
  if (input.rank > 2) {
    arguments.fail(Status::invalid_argument, "the transpose of a tensor of rank ", input.rank);
  }
  return copy_transposed(arguments, input, 0, input.rank == 2 ? 1 : 0, arguments.output(1));
}

Status flip_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  std::int64_t dims[max_rank];
  const std::size_t count = arguments.integers(1, dims, max_rank);
  Tensor& output = arguments.output(2);
  if (!arguments.ok()) {
    return arguments.status();
  }
  View view = view_of(input);
  bool seen[max_rank] = {};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t dim = arguments.another_dim(dims[i], input.rank, seen);
    if (dim < input.rank && input.sizes[dim] != 0) {
      view.first += static_cast<std::size_t>(input.sizes[dim] - 1) * view.strides[dim];
      view.strides[dim] = std::size_t{0} - view.strides[dim];
    }
  }
  return copy_view(arguments, input, view, output);
}

Status repeat_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  std::int32_t repeats[max_rank] = {};
  const std::size_t rank = read_counts(arguments, 1, repeats);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(output, input.dtype, "the output");
  if (!arguments.ok() || rank < input.rank) {
    return arguments.fail(Status::invalid_argument, rank, " repeats for a tensor of rank ", input.rank);
  }
  const View own = view_of(input);
  View block;  // the input, with the output's dimensions
  std::int32_t sizes[max_rank] = {};
  for (std::size_t i = 0; i < rank; ++i) {
    const bool is_new = i + input.rank < rank;
    const std::size_t dim = is_new ? 0 : i + input.rank - rank;
    block.append(is_new ? 1 : own.sizes[dim], is_new ? 0 : own.strides[dim]);
    const std::int64_t size = std::int64_t{block.sizes[i]} * repeats[i];
    if (size > 0x7FFFFFFF) {
      return arguments.fail(Status::shape_mismatch, "size ", i, " of the result is ", size);
    }
    sizes[i] = static_cast<std::int32_t>(size);
  }
  if (arguments.resize(output, sizes, rank) != Status::ok || input.element_count() == 0) {
    return arguments.status();
  }
  const View whole = view_of(output);
  View to;      // a block in it
  View starts;  // of the blocks
  for (std::size_t i = 0; i < rank; ++i) {
    to.append(block.sizes[i], whole.strides[i]);
    starts.append(repeats[i], whole.strides[i] * static_cast<std::size_t>(block.sizes[i]));
  }
  walk({&starts}, [&](const std::size_t(&at)[1]) {
    to.first = at[0];
    copy_elements(input, block, output, to);
  });
  return arguments.status();
}

Status as_strided_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, size, stride, storage_offset, out
  const Tensor& input = arguments.tensor(0);
  View view;
  std::int32_t strides[max_rank] = {};
  view.rank = read_counts(arguments, 1, view.sizes);
  const std::size_t stride_count = read_counts(arguments, 2, strides);
  const std::int64_t first = arguments.integer_or(3, 0);
  Tensor& output = arguments.output(4);
  arguments.expect_contiguous(input, "the input");
  if (!arguments.ok() || stride_count != view.rank || first < 0) {
    return arguments.fail(Status::invalid_argument, view.rank, " sizes, ", stride_count, " strides, offset ",
                          first);
  }
  const auto limit = static_cast<std::int64_t>(input.element_count());
  std::int64_t last = first;
  bool empty = false;
  for (std::size_t i = 0; i < view.rank; ++i) {
    view.strides[i] = static_cast<std::size_t>(strides[i]);
    empty = empty || view.sizes[i] == 0;
    // A product of 31-bit numbers, added while below 2^31.
    last = last >= limit || view.sizes[i] == 0 ? last : last + std::int64_t{view.sizes[i] - 1} * strides[i];
  }
  if (!empty && last >= limit) {
    return arguments.fail(Status::invalid_argument, "element ", last, " of ", limit);
  }
  view.first = static_cast<std::size_t>(first);
  return copy_view(arguments, input, view, output);
}

Status diagonal_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, offset, dim1, dim2, out
  const Tensor& input = arguments.tensor(0);
  const std::int64_t shift = arguments.integer(1);
  const std::size_t rows = arguments.dim(2, input.rank);
  const std::size_t columns = arguments.dim(3, input.rank);
  Tensor& output = arguments.output(4);
  if (!arguments.ok() || input.rank < 2 || rows == columns || shift < -0x7FFFFFFF || shift > 0x7FFFFFFF) {
    return arguments.fail(Status::invalid_argument, "diagonal ", shift, " of dimensions ", rows, " and ",
                          columns);
  }
  const View own = view_of(input);
  View view;
  for (std::size_t i = 0; i < input.rank; ++i) {
    if (i != rows && i != columns) {
      view.append(own.sizes[i], own.strides[i]);
    }
  }
  const std::int64_t height = input.sizes[rows] + (shift < 0 ? shift : 0);
  const std::int64_t width = input.sizes[columns] - (shift > 0 ? shift : 0);
  const std::int64_t length = std::max<std::int64_t>(std::min(height, width), 0);
  view.append(static_cast<std::int32_t>(length), own.strides[rows] + own.strides[columns]);
  if (length != 0) {
    view.first = shift < 0 ? static_cast<std::size_t>(-shift) * own.strides[rows]
                           : static_cast<std::size_t>(shift) * own.strides[columns];
  }
  return copy_view(arguments, input, view, output);
}

Status unfold_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, dimension, size, step, out
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  const std::int64_t size = arguments.integer(2);
  const std::int64_t step = arguments.integer(3);
  Tensor& output = arguments.output(4);
  const std::int64_t length = arguments.ok() && input.rank != 0 ? input.sizes[dim] : 1;
  if (!arguments.ok() || input.rank == max_rank || size < 0 || size > length || step < 1) {
    return arguments.fail(Status::invalid_argument, "parts of ", size, " of ", length, " elements, ", step,
                          " apart");
  }
  const View own = view_of(input);
  View view = input.rank == 0 ? own : part_of(own, dim, 0, (length - size) / step + 1, step);
  view.append(static_cast<std::int32_t>(size), input.rank == 0 ? 1 : own.strides[dim]);
  return copy_view(arguments, input, view, output);
}

Status pixel_shuffle_out(KernelContext& context, Span<Value* const> values) {
  return move_pixels(context, values, true);
}

Status pixel_unshuffle_out(KernelContext& context, Span<Value* const> values) {
  return move_pixels(context, values, false);
}

}  // namespace ethosu_sdk::kernels
