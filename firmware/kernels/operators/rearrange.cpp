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

// A result of the input's elements: its shape, and where its elements lie in the input.
struct Picture {
  std::int32_t sizes[max_rank] = {};
  Strides strides;
  std::size_t rank = 0;
  std::size_t first = 0;
};

Picture picture_of(const Tensor& input) {
  Picture picture;
  std::copy_n(input.sizes, input.rank, picture.sizes);
  picture.strides = strides_of(input);
  picture.rank = input.rank;
  return picture;
}

Status copy_picture(Arguments& arguments, const Tensor& input, const Picture& picture, Tensor& output) {
  arguments.expect_dtype(output, input.dtype, "the output");
  if (arguments.resize(output, picture.sizes, picture.rank) == Status::ok) {
    copy_to_all(input, picture.first, picture.strides, output);
  }
  return arguments.status();
}

Status copy_transposed(Arguments& arguments, const Tensor& input, std::size_t left, std::size_t right,
                       Tensor& output) {
  if (!arguments.ok()) {
    return arguments.status();
  }
  Picture picture = picture_of(input);
  std::swap(picture.sizes[left], picture.sizes[right]);
  std::swap(picture.strides.of[left], picture.strides.of[right]);
  return copy_picture(arguments, input, picture, output);
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

// The six dimensions that pixel_shuffle permutes: images, channels, rows and columns inside a pixel, rows,
// columns. `fine` has the larger planes.
struct Pixels {
  std::int32_t sizes[6];
  Strides coarse;
  Strides fine;
};

Pixels pixels_of(const Tensor& coarse, std::int32_t factor) {
  const std::size_t rank = coarse.rank;
  Pixels pixels{};
  std::int32_t images = 1;
  for (std::size_t i = 0; i + 3 < rank; ++i) {
    images *= coarse.sizes[i];
  }
  const std::int32_t channels = coarse.sizes[rank - 3] / factor / factor;
  const std::int32_t height = coarse.sizes[rank - 2];
  const std::int32_t width = coarse.sizes[rank - 1];
  const std::int32_t sizes[] = {images, channels, factor, factor, height, width};
  std::copy_n(sizes, 6, pixels.sizes);
  const auto plane = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  const auto scale = static_cast<std::size_t>(factor);
  const std::size_t pixel = scale * scale;
  const auto all = static_cast<std::size_t>(channels) * pixel * plane;
  const std::size_t row = static_cast<std::size_t>(width) * scale;
  const Strides coarse_strides = {
      {all, pixel * plane, scale * plane, plane, static_cast<std::size_t>(width), 1}};
  const Strides fine_strides = {{all, pixel * plane, row, 1, row * scale, scale}};
  pixels.coarse = coarse_strides;
  pixels.fine = fine_strides;
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
  Picture picture = picture_of(input);
  bool seen[max_rank] = {};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t dim = arguments.checked_dim(dims[i], input.rank);
    if (seen[dim]) {
      return arguments.fail(Status::invalid_argument, "dimension ", dim, " twice");
    }
    seen[dim] = true;
    if (dim < input.rank && input.sizes[dim] != 0) {
      picture.first += static_cast<std::size_t>(input.sizes[dim] - 1) * picture.strides.of[dim];
      picture.strides.of[dim] = std::size_t{0} - picture.strides.of[dim];
    }
  }
  return copy_picture(arguments, input, picture, output);
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
  std::int32_t block[max_rank] = {};  // the input's sizes, aligned to the output's
  std::int32_t sizes[max_rank] = {};
  Strides from;
  const Strides own = strides_of(input);
  for (std::size_t i = 0; i < rank; ++i) {
    const bool is_new = i + input.rank < rank;
    const std::size_t dim = is_new ? 0 : i + input.rank - rank;
    block[i] = is_new ? 1 : input.sizes[dim];
    from.of[i] = is_new ? 0 : own.of[dim];
    const std::int64_t size = std::int64_t{block[i]} * repeats[i];
    if (size > 0x7FFFFFFF) {
      return arguments.fail(Status::shape_mismatch, "size ", i, " of the result is ", size);
    }
    sizes[i] = static_cast<std::int32_t>(size);
  }
  if (arguments.resize(output, sizes, rank) != Status::ok || input.element_count() == 0) {
    return arguments.status();
  }
  const Strides to = strides_of(output);
  Strides steps[1];
  for (std::size_t i = 0; i < rank; ++i) {
    steps[0].of[i] = to.of[i] * static_cast<std::size_t>(block[i]);
  }
  walk(repeats, rank, steps,
       [&](const std::size_t(&at)[1]) { copy_elements(input, 0, from, output, at[0], to, block, rank); });
  return arguments.status();
}

Status as_strided_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, size, stride, storage_offset, out
  const Tensor& input = arguments.tensor(0);
  Picture picture;
  std::int32_t strides[max_rank] = {};
  picture.rank = read_counts(arguments, 1, picture.sizes);
  const std::size_t stride_count = read_counts(arguments, 2, strides);
  const std::int64_t first = arguments.integer_or(3, 0);
  Tensor& output = arguments.output(4);
  arguments.expect_contiguous(input, "the input");
  if (!arguments.ok() || stride_count != picture.rank || first < 0) {
    return arguments.fail(Status::invalid_argument, picture.rank, " sizes, ", stride_count,
                          " strides, offset ", first);
  }
  const auto limit = static_cast<std::int64_t>(input.element_count());
  std::int64_t last = first;
  bool empty = false;
  for (std::size_t i = 0; i < picture.rank; ++i) {
    picture.strides.of[i] = static_cast<std::size_t>(strides[i]);
    empty = empty || picture.sizes[i] == 0;
    // A product of 31-bit numbers, added while below 2^31.
    last = last >= limit || picture.sizes[i] == 0 ? last
                                                  : last + std::int64_t{picture.sizes[i] - 1} * strides[i];
  }
  if (!empty && last >= limit) {
    return arguments.fail(Status::invalid_argument, "element ", last, " of ", limit);
  }
  picture.first = static_cast<std::size_t>(first);
  return copy_picture(arguments, input, picture, output);
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
  const Strides own = strides_of(input);
  Picture picture;
  for (std::size_t i = 0; i < input.rank; ++i) {
    if (i != rows && i != columns) {
      picture.sizes[picture.rank] = input.sizes[i];
      picture.strides.of[picture.rank++] = own.of[i];
    }
  }
  const std::int64_t height = input.sizes[rows] + (shift < 0 ? shift : 0);
  const std::int64_t width = input.sizes[columns] - (shift > 0 ? shift : 0);
  const std::int64_t length = std::max<std::int64_t>(std::min(height, width), 0);
  picture.sizes[picture.rank] = static_cast<std::int32_t>(length);
  picture.strides.of[picture.rank++] = own.of[rows] + own.of[columns];
  if (length != 0) {
    picture.first = shift < 0 ? static_cast<std::size_t>(-shift) * own.of[rows]
                              : static_cast<std::size_t>(shift) * own.of[columns];
  }
  return copy_picture(arguments, input, picture, output);
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
  Picture picture = picture_of(input);
  const std::size_t stride = input.rank == 0 ? 1 : picture.strides.of[dim];
  if (input.rank != 0) {
    const std::int64_t count = (length - size) / step + 1;
    picture.sizes[dim] = static_cast<std::int32_t>(count);
    picture.strides.of[dim] *= count > 1 ? static_cast<std::size_t>(step) : 1;
  }
  picture.sizes[picture.rank] = static_cast<std::int32_t>(size);
  picture.strides.of[picture.rank++] = stride;
  return copy_picture(arguments, input, picture, output);
}

Status pixel_shuffle_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  const std::int32_t factor = read_factor(arguments, input);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(output, input.dtype, "the output");
  arguments.expect_contiguous(output, "the output");
  if (!arguments.ok() || input.sizes[input.rank - 3] % (factor * factor) != 0) {
    return arguments.fail(Status::invalid_argument, "channels that are not a multiple of ", factor,
                          " squared");
  }
  std::int32_t sizes[max_rank] = {};
  std::copy_n(input.sizes, input.rank, sizes);
  sizes[input.rank - 3] /= factor * factor;
  for (std::size_t i = input.rank - 2u; i < input.rank; ++i) {
    const std::int64_t size = std::int64_t{sizes[i]} * factor;
    if (size > 0x7FFFFFFF) {
      return arguments.fail(Status::shape_mismatch, "size ", i, " of the result is ", size);
    }
    sizes[i] = static_cast<std::int32_t>(size);
  }
  if (arguments.resize(output, sizes, input.rank) == Status::ok) {
    const Pixels pixels = pixels_of(input, factor);
    copy_elements(input, 0, pixels.coarse, output, 0, pixels.fine, pixels.sizes, 6);
  }
  return arguments.status();
}

Status pixel_unshuffle_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  const std::int32_t factor = read_factor(arguments, input);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(output, input.dtype, "the output");
  arguments.expect_contiguous(output, "the output");
  if (!arguments.ok() || input.sizes[input.rank - 2] % factor != 0 ||
      input.sizes[input.rank - 1] % factor != 0) {
    return arguments.fail(Status::invalid_argument, "a plane that is not a multiple of ", factor);
  }
  std::int32_t sizes[max_rank] = {};
  std::copy_n(input.sizes, input.rank, sizes);
  const std::int64_t channels = std::int64_t{sizes[input.rank - 3]} * factor * factor;
  if (channels > 0x7FFFFFFF) {
    return arguments.fail(Status::shape_mismatch, channels, " channels");
  }
  sizes[input.rank - 3] = static_cast<std::int32_t>(channels);
  sizes[input.rank - 2] /= factor;
  sizes[input.rank - 1] /= factor;
  if (arguments.resize(output, sizes, input.rank) == Status::ok) {
    const Pixels pixels = pixels_of(output, factor);
    copy_elements(input, 0, pixels.fine, output, 0, pixels.coarse, pixels.sizes, 6);
  }
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
