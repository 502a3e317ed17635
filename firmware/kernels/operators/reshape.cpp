// Operators that keep the elements and their order: copies between layouts, other shapes, other dtypes.
#include <algorithm>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/copy.hpp"
#include "kernels/support/elementwise.hpp"

namespace ethosu_sdk::kernels {
namespace {

Status copy_between_layouts(Arguments& arguments, const Tensor& input, Tensor& output) {
  arguments.expect_dtype(output, input.dtype, "the output");
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  copy_all(input, output);
  return arguments.status();
}

// What no copy on one processor depends on, and what the output's dim_order says already: both must be what
// they are declared as, as in ExecuTorch's kernels.
void expect_blocking(Arguments& arguments, std::size_t index) {
  static_cast<void>(arguments.boolean(index));
}

void expect_memory_format(Arguments& arguments, std::size_t index) {
  if (!arguments.is_none(index)) {
    static_cast<void>(arguments.integer(index));
  }
}

// A list of dimensions, or none for those of the input.
void expect_dim_order(Arguments& arguments, std::size_t index, const Tensor& input, const Tensor& output) {
  if (arguments.is_none(index)) {
    arguments.expect_same_dim_order(input, output);
    return;
  }
  std::int64_t order[max_rank] = {};
  const std::size_t count = arguments.integers(index, order, max_rank);
  if (arguments.ok() && (count != output.rank || !std::equal(order, order + count, output.dim_order))) {
    static_cast<void>(arguments.fail(Status::invalid_argument, "another dim_order than the output's"));
  }
}

// To the output's dtype, dim_order and shape; the input is repeated where it has size 1 or no dimension.
Status copy_into(Arguments& arguments, const Tensor& input, Tensor& output) {
  if (!arguments.ok()) {
    return arguments.status();
  }
  for (std::size_t i = 0; i < input.rank; ++i) {
    const std::size_t from_end = input.rank - i;
    if (from_end > output.rank ||
        (input.sizes[i] != 1 && input.sizes[i] != output.sizes[output.rank - from_end])) {
      return arguments.fail(Status::shape_mismatch, "size ", i, " of the source is ", input.sizes[i]);
    }
  }
  if (output.dtype == input.dtype) {
    copy_elements(input, broadcast_view(input, output.sizes, output.rank), output, view_of(output));
    return arguments.status();
  }
  return with_compute_type(input.dtype, [&](auto type) {
    using Compute = type_of<decltype(type)>;
    return map_unary<Compute>(arguments, input, output, [](Compute value) { return value; });
  });
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

}  // namespace

Status clone_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);  // self, memory_format, out
  expect_memory_format(arguments, 1);
  return copy_between_layouts(arguments, arguments.tensor(0), arguments.output(2));
}

// alias, detach and lift_fresh
Status alias_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  return copy_between_layouts(arguments, arguments.tensor(0), arguments.output(1));
}

Status clone_dim_order_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, non_blocking, dim_order, out
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(3);
  expect_blocking(arguments, 1);
  if (arguments.ok() && input.data == output.data && input.byte_count() != 0) {
    return arguments.status();  // the runtime has laid both at a delegate's border, in the delegate's order
  }
  expect_dim_order(arguments, 2, input, output);
  return copy_between_layouts(arguments, input, output);
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

Status squeeze_copy_dim_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  std::int32_t sizes[max_rank] = {};
  std::size_t rank = 0;
  for (std::size_t i = 0; i < input.rank; ++i) {
    if (i != dim || input.sizes[i] != 1) {
      sizes[rank++] = input.sizes[i];
    }
  }
  return copy_reshaped(arguments, input, arguments.output(2), sizes, rank);
}

// The output's dtype and dim_order say what to convert to. Also aten::_to_copy: self, non_blocking,
// memory_format, out.
Status to_dim_order_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, non_blocking, dim_order, out
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(3);
  expect_blocking(arguments, 1);
  if (!arguments.is_none(2) && !arguments.is_integer(2)) {
    expect_dim_order(arguments, 2, input, output);
  }
  arguments.resize_like(output, input);
  return copy_into(arguments, input, output);
}

Status copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, src, non_blocking, out
  const Tensor& shape = arguments.tensor(0);
  const Tensor& source = arguments.tensor(1);
  Tensor& output = arguments.output(3);
  expect_blocking(arguments, 2);
  arguments.resize_like(output, shape);
  return copy_into(arguments, source, output);
}

Status copy_in_place(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);  // self, src, non_blocking: writes self
  const Tensor& source = arguments.tensor(1);
  expect_blocking(arguments, 2);
  return copy_into(arguments, source, arguments.output(0));
}

}  // namespace ethosu_sdk::kernels
