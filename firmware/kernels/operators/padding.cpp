// Operators whose elements come from an index that is computed for each: aten::constant_pad_nd, reflection
// and replication padding, roll and tril.
#include <algorithm>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/operators/fill.hpp"
#include "kernels/support/copy.hpp"
#include "kernels/support/walk.hpp"

namespace ethosu_sdk::kernels {
namespace {

constexpr std::int64_t max_padding = 0x7FFFFFFF;

// Elements before and after each dimension; negative ones are cut off.
struct Margins {
  std::int64_t before[max_rank] = {};
  std::int64_t after[max_rank] = {};
};

// The list has pairs, the last dimension's first.
Margins read_margins(Arguments& arguments, std::size_t index, const Tensor& input) {
  Margins margins;
  std::int64_t items[2 * max_rank];
  const std::size_t count = arguments.integers(index, items, 2 * max_rank);
  if (!arguments.ok() || count % 2 != 0 || count > 2u * input.rank) {
    arguments.fail(Status::invalid_argument, count, " margins for a tensor of rank ", input.rank);
    return margins;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (items[i] < -max_padding || items[i] > max_padding) {
      arguments.fail(Status::invalid_argument, "a margin of ", items[i]);
      return margins;
    }
    const std::size_t dim = input.rank - 1 - i / 2;
    (i % 2 == 0 ? margins.before : margins.after)[dim] = items[i];
  }
  return margins;
}

Status resize_padded(Arguments& arguments, const Tensor& input, const Margins& margins, Tensor& output) {
  std::int32_t sizes[max_rank] = {};
  for (std::size_t i = 0; i < input.rank; ++i) {
    const std::int64_t size = input.sizes[i] + margins.before[i] + margins.after[i];
    if (size < 0 || size > max_padding) {
      return arguments.fail(Status::invalid_argument, "size ", i, " of the result is ", size);
    }
    sizes[i] = static_cast<std::int32_t>(size);
  }
  return arguments.resize(output, sizes, input.rank);
}

// Copies to every index of `output` the input element at `source(dim, position)` in each dimension.
template <typename Source>
void copy_from(const Tensor& input, Tensor& output, Source&& source) {
  const View from = view_of(input);
  const View to = view_of(output);
  walk_indices(output.sizes, output.rank, [&](const std::int32_t* index) {
    std::size_t element = 0;
    for (std::size_t dim = 0; dim < output.rank; ++dim) {
      element += static_cast<std::size_t>(source(dim, index[dim])) * from.strides[dim];
    }
    copy_element(input, element, output, to.at(index));
  });
}

// Padding of the last dimensions by the input's own elements.
template <typename Source>
Status pad_by(KernelContext& context, Span<Value* const> values, std::int64_t excluded, Source&& source) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  const Margins margins = read_margins(arguments, 1, input);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(output, input.dtype, "the output");
  for (std::size_t i = 0; i < input.rank && arguments.ok(); ++i) {
    const std::int64_t limit = input.sizes[i] - excluded;
    const bool padded = margins.before[i] != 0 || margins.after[i] != 0;
    if (padded &&
        (input.sizes[i] == 0 || (excluded != 0 && std::max(margins.before[i], margins.after[i]) > limit))) {
      arguments.fail(Status::invalid_argument, "margins of ", margins.before[i], " and ", margins.after[i],
                     " for ", input.sizes[i], " elements");
    }
  }
  if (arguments.ok() && resize_padded(arguments, input, margins, output) == Status::ok) {
    copy_from(input, output, [&](std::size_t dim, std::int32_t position) {
      return source(position - margins.before[dim], std::int64_t{input.sizes[dim]});
    });
  }
  return arguments.status();
}

}  // namespace

Status constant_pad_nd_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);
  const Tensor& input = arguments.tensor(0);
  const Margins margins = read_margins(arguments, 1, input);
  const Scalar number = arguments.scalar(2);
  Tensor& output = arguments.output(3);
  arguments.expect_dtype(output, input.dtype, "the output");
  if (!arguments.ok() || resize_padded(arguments, input, margins, output) != Status::ok ||
      fill(arguments, output, number) != Status::ok) {
    return arguments.status();
  }
  View from = view_of(input);
  View to = view_of(output);
  for (std::size_t i = 0; i < input.rank; ++i) {
    const std::int64_t cut = std::max<std::int64_t>(-margins.before[i], 0);
    const std::int64_t left = std::max<std::int64_t>(margins.before[i], 0);
    const std::int64_t count = input.sizes[i] - cut - std::max<std::int64_t>(-margins.after[i], 0);
    if (count <= 0) {
      return arguments.status();
    }
    from = part_of(from, i, cut, count);
    to = part_of(to, i, left, count);
  }
  copy_elements(input, from, output, to);
  return arguments.status();
}

Status reflection_pad_out(KernelContext& context, Span<Value* const> values) {
  return pad_by(context, values, 1, [](std::int64_t position, std::int64_t size) {
    position = position < 0 ? -position : position;
    return position < size ? position : 2 * (size - 1) - position;
  });
}

Status replication_pad_out(KernelContext& context, Span<Value* const> values) {
  return pad_by(context, values, 0, [](std::int64_t position, std::int64_t size) {
    return std::clamp<std::int64_t>(position, 0, size - 1);
  });
}

Status roll_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, shifts, dims, out
  const Tensor& input = arguments.tensor(0);
  std::int64_t shifts[max_rank];
  std::int64_t dims[max_rank];
  const std::size_t count = arguments.integers(1, shifts, max_rank);
  const std::size_t dim_count = arguments.integers(2, dims, max_rank);
  Tensor& output = arguments.output(3);
  arguments.expect_dtype(output, input.dtype, "the output");
  if (!arguments.ok() || count != dim_count || input.rank == 0) {
    return arguments.fail(Status::unsupported_argument, count, " shifts of ", dim_count, " dimensions");
  }
  std::int64_t shift[max_rank] = {};  // below the size
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t dim = arguments.checked_dim(dims[i], input.rank);
    const std::int64_t size = input.sizes[dim];
    shift[dim] = size == 0 ? 0 : ((shift[dim] + shifts[i] % size) % size + size) % size;
  }
  if (arguments.resize_like(output, input) == Status::ok) {
    copy_from(input, output, [&](std::size_t dim, std::int32_t position) {
      const std::int64_t from = position - shift[dim];
      return from < 0 ? from + input.sizes[dim] : from;
    });
  }
  return arguments.status();
}

Status tril_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  const std::int64_t diagonal = std::clamp<std::int64_t>(arguments.integer(1), -max_padding, max_padding);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(output, input.dtype, "the output");
  if (!arguments.ok() || input.rank < 2) {
    return arguments.fail(Status::invalid_argument, "a triangle of a tensor of rank ", input.rank);
  }
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  copy_all(input, output);
  const std::size_t bytes = element_bytes(output.dtype);
  const View to = view_of(output);
  walk_indices(output.sizes, output.rank, [&](const std::int32_t* index) {
    if (index[output.rank - 1] - std::int64_t{index[output.rank - 2]} > diagonal) {
      auto* const element = output.as<std::uint8_t>() + to.at(index) * bytes;
      std::fill_n(element, bytes, std::uint8_t{0});
    }
  });
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
