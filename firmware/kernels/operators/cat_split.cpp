// aten::cat and stack, split_copy, split_with_sizes_copy and unbind_copy: tensors joined and taken apart.
#include <algorithm>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/copy.hpp"

namespace ethosu_sdk::kernels {
namespace {

// PyTorch lets cat() skip tensors of one dimension and no elements.
bool is_skipped(const Tensor& tensor) {
  return tensor.rank == 1 && tensor.sizes[0] == 0;
}

// Copies the next `count` rows of `input` to the part of that many.
Status copy_rows(Arguments& arguments, const Tensor& input, std::size_t dim, std::int64_t row,
                 std::int64_t count, Tensor& output) {
  arguments.expect_dtype(output, input.dtype, "an output");
  return copy_view(arguments, input, part_of(view_of(input), dim, row, count), output);
}

}  // namespace

Status cat_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const std::size_t count = arguments.tensor_count(0);
  Tensor& output = arguments.output(2);
  const std::size_t dim = arguments.dim(1, output.rank);
  std::int32_t sizes[max_rank] = {};
  if (arguments.ok()) {
    std::copy_n(output.sizes, output.rank, sizes);
  }
  std::int64_t joined = 0;
  for (std::size_t i = 0; i < count && arguments.ok(); ++i) {
    const Tensor& input = arguments.list_tensor(0, i);
    arguments.expect_dtype(input, output.dtype, "a joined tensor");
    if (!arguments.ok() || is_skipped(input)) {
      continue;
    }
    if (input.rank != output.rank || input.rank == 0) {
      return arguments.fail(Status::shape_mismatch, "tensor ", i, " has rank ", input.rank);
    }
    for (std::size_t k = 0; k < input.rank; ++k) {
      if (k != dim && joined == 0) {
        sizes[k] = input.sizes[k];  // the first one says it; a later one is compared
      }
      if (k != dim && sizes[k] != input.sizes[k]) {
        return arguments.fail(Status::shape_mismatch, "size ", k, " of tensor ", i, " is ", input.sizes[k]);
      }
    }
    joined += input.sizes[dim];
  }
  if (!arguments.ok() || output.rank == 0 || joined > 0x7FFFFFFF) {
    return arguments.fail(Status::shape_mismatch, joined, " rows in an output of rank ", output.rank);
  }
  sizes[dim] = static_cast<std::int32_t>(joined);
  if (arguments.resize(output, sizes, output.rank) != Status::ok) {
    return arguments.status();
  }
  const View to = view_of(output);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor& input = arguments.list_tensor(0, i);
    if (!is_skipped(input)) {
      copy_elements(input, view_of(input), output, part_of(to, dim, row, input.sizes[dim]));
      row += input.sizes[dim];
    }
  }
  return arguments.status();
}

Status stack_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const std::size_t count = arguments.tensor_count(0);
  Tensor& output = arguments.output(2);
  const Tensor& model = count == 0 ? output : arguments.list_tensor(0, 0);
  if (!arguments.ok() || count == 0 || count > 0x7FFFFFFF || model.rank == max_rank) {
    return arguments.fail(Status::invalid_argument, count, " tensors of rank ", model.rank);
  }
  const std::size_t dim = arguments.dim(1, model.rank + 1u);
  std::int32_t sizes[max_rank] = {};
  for (std::size_t i = 0; i <= model.rank; ++i) {
    sizes[i] = i == dim ? static_cast<std::int32_t>(count) : model.sizes[i < dim ? i : i - 1];
  }
  for (std::size_t i = 0; i < count && arguments.ok(); ++i) {
    const Tensor& input = arguments.list_tensor(0, i);
    arguments.expect_dtype(input, output.dtype, "a stacked tensor");
    if (arguments.ok() &&
        (input.rank != model.rank || !std::equal(input.sizes, input.sizes + input.rank, model.sizes))) {
      arguments.fail(Status::shape_mismatch, "tensor ", i, " has other sizes than the first");
    }
  }
  if (arguments.resize(output, sizes, model.rank + 1u) != Status::ok) {
    return arguments.status();
  }
  const View to = view_of(output);
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor& input = arguments.list_tensor(0, i);
    copy_elements(input, view_of(input), output, slice_at(to, dim, i));
  }
  return arguments.status();
}

Status split_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, split_size, dim, out
  const Tensor& input = arguments.tensor(0);
  const std::int64_t part = arguments.integer(1);
  const std::size_t dim = arguments.dim(2, input.rank);
  const auto outputs = static_cast<std::int64_t>(arguments.tensor_count(3));
  const std::int64_t size = arguments.ok() && input.rank != 0 ? input.sizes[dim] : -1;
  // The last part is smaller, or the only one.
  if (size < 0 || part < 0 || (part == 0 && size != 0) ||
      outputs != (size == 0 ? 1 : (size - 1) / part + 1)) {
    return arguments.fail(Status::invalid_argument, outputs, " parts of ", part, " from ", size);
  }
  for (std::int64_t i = 0; i < outputs && arguments.ok(); ++i) {
    Tensor& output = arguments.list_output(3, static_cast<std::size_t>(i));
    const std::int64_t row = i * part;
    copy_rows(arguments, input, dim, row, std::min(part, size - row), output);
  }
  return arguments.status();
}

Status split_with_sizes_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, split_sizes, dim, out
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(2, input.rank);
  const std::size_t outputs = arguments.tensor_count(3);
  const std::size_t parts = arguments.integer_count(1);
  if (!arguments.ok() || input.rank == 0 || outputs != parts) {
    return arguments.fail(Status::invalid_argument, outputs, " outputs for ", parts, " parts");
  }
  std::int64_t row = 0;
  for (std::size_t i = 0; i < outputs && arguments.ok(); ++i) {
    const std::int64_t part = arguments.list_integer(1, i);
    if (part < 0 || part > input.sizes[dim] - row) {
      return arguments.fail(Status::invalid_argument, "a part of ", part, " from row ", row);
    }
    Tensor& output = arguments.list_output(3, i);
    copy_rows(arguments, input, dim, row, part, output);
    row += part;
  }
  return arguments.ok() && row != input.sizes[dim]
             ? arguments.fail(Status::invalid_argument, row, " rows of ", input.sizes[dim], " are taken")
             : arguments.status();
}

Status unbind_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);  // self, dim, out
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  const std::size_t outputs = arguments.tensor_count(2);
  if (!arguments.ok() || input.rank == 0 || outputs != static_cast<std::size_t>(input.sizes[dim])) {
    return arguments.fail(Status::invalid_argument, outputs, " outputs from a tensor of rank ", input.rank);
  }
  const View from = view_of(input);
  for (std::size_t i = 0; i < outputs && arguments.ok(); ++i) {
    Tensor& output = arguments.list_output(2, i);
    arguments.expect_dtype(output, input.dtype, "an output");
    copy_view(arguments, input, slice_at(from, dim, i), output);
  }
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
