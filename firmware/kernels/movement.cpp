// Operators that move elements without computing: copies between layouts, views, permutations, parts, joins.
#include <cstring>

#include "kernels/arguments.hpp"
#include "kernels/elements.hpp"
#include "kernels/kernels.hpp"
#include "kernels/walk.hpp"

namespace ethosu_sdk::kernels {
namespace {

// Copies elements of `Bytes` bytes; from and to may be any layout.
template <std::size_t Bytes>
void copy_strided(const Tensor& input, std::size_t from, const Strides& from_strides, Tensor& output, std::size_t to,
                  const Strides& to_strides, const std::int32_t* sizes, std::size_t rank) {
  const auto* const source = input.as<const std::uint8_t>() + from * Bytes;
  auto* const destination = output.as<std::uint8_t>() + to * Bytes;
  const Strides strides[] = {from_strides, to_strides};
  walk(sizes, rank, strides, [=](const std::size_t(&at)[2]) {
    std::memmove(destination + at[1] * Bytes, source + at[0] * Bytes, Bytes);
  });
}

using CopyStrided = void (*)(const Tensor&, std::size_t, const Strides&, Tensor&, std::size_t, const Strides&,
                             const std::int32_t*, std::size_t);

CopyStrided copy_for(ScalarType dtype) {
  switch (element_bytes(dtype)) {
    case 1:
      return copy_strided<1>;
    case 2:
      return copy_strided<2>;
    case 4:
      return copy_strided<4>;
    default:
      return copy_strided<8>;
  }
}

// The whole of `output`, element by element.
void copy_to_all(const Tensor& input, std::size_t from, const Strides& strides, Tensor& output) {
  copy_for(output.dtype)(input, from, strides, output, 0, strides_of(output), output.sizes, output.rank);
}

void copy_bytes(const Tensor& input, Tensor& output) {
  if (output.byte_count() != 0) {
    std::memmove(output.data, input.data, output.byte_count());
  }
}

bool same_layout(const Tensor& left, const Tensor& right) {
  for (std::size_t i = 0; i < left.rank; ++i) {
    if (left.dim_order[i] != right.dim_order[i]) {
      return false;
    }
  }
  return true;
}

Status copy_between_layouts(Arguments& arguments, const Tensor& input, Tensor& output) {
  arguments.expect_dtype(output, input.dtype, "the output");
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  if (same_layout(input, output)) {
    copy_bytes(input, output);
  } else {
    copy_to_all(input, 0, strides_of(input), output);
  }
  return arguments.status();
}

// Both contiguous, equally many elements: only the shape differs.
Status copy_reshaped(Arguments& arguments, const Tensor& input, Tensor& output, const std::int32_t* sizes,
                     std::size_t rank) {
  arguments.expect_dtype(output, input.dtype, "the output");
  arguments.expect_contiguous(input, "the input");
  arguments.expect_contiguous(output, "the output");
  if (arguments.resize(output, sizes, rank) != Status::ok) {
    return arguments.status();
  }
  if (output.element_count() != input.element_count()) {
    return arguments.fail(Status::shape_mismatch, "a view of ", input.element_count(), " elements as ",
                          output.element_count());
  }
  copy_bytes(input, output);
  return arguments.status();
}

// A size list with one -1 at most, which becomes what is left.
std::size_t read_view_sizes(Arguments& arguments, std::size_t index, const Tensor& input,
                            std::int32_t (&sizes)[max_rank]) {
  std::int64_t wanted[max_rank];
  const std::size_t rank = arguments.integers(index, wanted, max_rank);
  std::uint64_t known = 1;
  std::size_t inferred = max_rank;
  for (std::size_t i = 0; i < rank; ++i) {
    if (wanted[i] == -1 && inferred == max_rank) {
      inferred = i;
      continue;
    }
    if (wanted[i] < 0 || wanted[i] > 0x7FFFFFFF) {
      arguments.fail(Status::invalid_argument, "size ", i, " of the view is ", wanted[i]);
      return 0;
    }
    sizes[i] = static_cast<std::int32_t>(wanted[i]);
    known = known * static_cast<std::uint64_t>(wanted[i]) & 0xFFFFFFFFu;
  }
  if (inferred != max_rank) {
    if (known == 0) {
      arguments.fail(Status::invalid_argument, "size ", inferred, " of the view cannot be inferred");
      return 0;
    }
    sizes[inferred] = static_cast<std::int32_t>(input.element_count() / known);
  }
  return rank;
}

}  // namespace

Status clone_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);  // self, memory_format, out
  return copy_between_layouts(arguments, arguments.tensor(0), arguments.output(2));
}

Status clone_dim_order_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, non_blocking, dim_order, out: whose dim_order says it
  return copy_between_layouts(arguments, arguments.tensor(0), arguments.output(3));
}

Status view_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  std::int32_t sizes[max_rank] = {};
  const std::size_t rank = read_view_sizes(arguments, 1, input, sizes);
  return copy_reshaped(arguments, input, arguments.output(2), sizes, rank);
}

Status unsqueeze_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  if (input.rank == max_rank) {
    return arguments.fail(Status::unsupported_argument, "a result of rank 17");
  }
  const std::size_t dim = arguments.dim(1, input.rank + 1u);
  std::int32_t sizes[max_rank] = {};
  for (std::size_t i = 0; i <= input.rank; ++i) {
    sizes[i] = i == dim ? 1 : input.sizes[i < dim ? i : i - 1];
  }
  return copy_reshaped(arguments, input, arguments.output(2), sizes, input.rank + 1u);
}

Status squeeze_copy_dims_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  std::int64_t dims[max_rank];
  const std::size_t count = arguments.integers(1, dims, max_rank);
  bool squeezed[max_rank] = {};
  for (std::size_t i = 0; i < count; ++i) {
    squeezed[arguments.checked_dim(dims[i], input.rank)] = true;
  }
  std::int32_t sizes[max_rank] = {};
  std::size_t rank = 0;
  for (std::size_t i = 0; i < input.rank; ++i) {
    if (!squeezed[i] || input.sizes[i] != 1) {
      sizes[rank++] = input.sizes[i];
    }
  }
  return copy_reshaped(arguments, input, arguments.output(2), sizes, rank);
}

Status permute_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  std::int64_t dims[max_rank];
  const std::size_t count = arguments.integers(1, dims, max_rank);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(output, input.dtype, "the output");
  if (count != input.rank) {
    return arguments.fail(Status::invalid_argument, count, " dimensions for a tensor of rank ", input.rank);
  }
  const Strides own = strides_of(input);
  Strides strides;
  std::int32_t sizes[max_rank] = {};
  bool seen[max_rank] = {};
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t dim = arguments.checked_dim(dims[i], input.rank);
    if (seen[dim]) {
      return arguments.fail(Status::invalid_argument, "dimension ", dim, " twice");
    }
    seen[dim] = true;
    strides.of[i] = own.of[dim];
    sizes[i] = input.sizes[dim];
  }
  if (arguments.resize(output, sizes, count) == Status::ok) {
    copy_to_all(input, 0, strides, output);
  }
  return arguments.status();
}

Status expand_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, size, implicit, out
  const Tensor& input = arguments.tensor(0);
  std::int64_t wanted[max_rank];
  const std::size_t rank = arguments.integers(1, wanted, max_rank);
  Tensor& output = arguments.output(3);
  arguments.expect_dtype(output, input.dtype, "the output");
  if (rank < input.rank) {
    return arguments.fail(Status::invalid_argument, "a tensor of rank ", input.rank, " expanded to ", rank);
  }
  const Strides own = strides_of(input);
  Strides strides;
  std::int32_t sizes[max_rank] = {};
  for (std::size_t i = 0; i < rank; ++i) {
    const bool is_new = i + input.rank < rank;
    const std::size_t dim = is_new ? 0 : i + input.rank - rank;
    const std::int64_t had = is_new ? 1 : input.sizes[dim];
    const std::int64_t size = wanted[i] == -1 && !is_new ? had : wanted[i];
    if (size < 0 || size > 0x7FFFFFFF || (had != 1 && had != size)) {
      return arguments.fail(Status::invalid_argument, "size ", had, " expanded to ", wanted[i]);
    }
    sizes[i] = static_cast<std::int32_t>(size);
    strides.of[i] = had == 1 ? 0 : own.of[dim];
  }
  if (arguments.resize(output, sizes, rank) == Status::ok) {
    copy_to_all(input, 0, strides, output);
  }
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
