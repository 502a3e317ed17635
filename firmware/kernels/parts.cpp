// aten::slice_copy, select_copy and cat: parts of tensors, and tensors joined.
#include <algorithm>
#include <cstdint>

#include "kernels/copy.hpp"
#include "kernels/kernels.hpp"

namespace ethosu_sdk::kernels {
namespace {

// PyTorch's rule for slices: negative positions count from the end, and all are cut to the dimension.
std::int64_t slice_position(std::int64_t position, std::int64_t size) {
  // Far positions are cut first: INT64_MAX means the end.
  const std::int64_t cut = std::clamp<std::int64_t>(position, -size, size);
  return cut < 0 ? cut + size : cut;
}

// PyTorch lets cat() skip tensors of one dimension and no elements.
bool is_skipped(const Tensor& tensor) {
  return tensor.rank == 1 && tensor.sizes[0] == 0;
}

}  // namespace

Status slice_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 6);
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  const std::int64_t wanted_start = arguments.integer_or(2, 0);
  const std::int64_t wanted_end = arguments.integer_or(3, 0x7FFFFFFF);
  const std::int64_t step = arguments.integer(4);
  Tensor& output = arguments.output(5);
  arguments.expect_dtype(output, input.dtype, "the output");
  if (!arguments.ok() || input.rank == 0 || step < 1) {
    return arguments.fail(Status::invalid_argument, "a slice of step ", step, " of a tensor of rank ",
                          input.rank);
  }
  const std::int64_t size = input.sizes[dim];
  const std::int64_t start = slice_position(wanted_start, size);
  const std::int64_t end = slice_position(wanted_end, size);
  const std::int64_t count = end > start ? (end - start - 1) / step + 1 : 0;
  std::int32_t sizes[max_rank] = {};
  std::copy_n(input.sizes, input.rank, sizes);
  sizes[dim] = static_cast<std::int32_t>(count);
  if (arguments.resize(output, sizes, input.rank) == Status::ok && count != 0) {
    Strides strides = strides_of(input);
    const std::size_t first = static_cast<std::size_t>(start) * strides.of[dim];
    strides.of[dim] *= count > 1 ? static_cast<std::size_t>(step) : 1;
    copy_to_all(input, first, strides, output);
  }
  return arguments.status();
}

Status select_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  const std::int64_t wanted = arguments.integer(2);
  Tensor& output = arguments.output(3);
  arguments.expect_dtype(output, input.dtype, "the output");
  const std::int64_t size = arguments.ok() && input.rank != 0 ? input.sizes[dim] : 0;
  if (wanted < -size || wanted >= size) {
    return arguments.fail(Status::invalid_argument, "element ", wanted, " of ", size);
  }
  const Strides own = strides_of(input);
  Strides strides;
  std::int32_t sizes[max_rank] = {};
  for (std::size_t i = 0; i + 1 < input.rank; ++i) {
    const std::size_t from = i < dim ? i : i + 1;
    sizes[i] = input.sizes[from];
    strides.of[i] = own.of[from];
  }
  if (arguments.resize(output, sizes, input.rank - 1u) == Status::ok) {
    const auto position = static_cast<std::size_t>(wanted < 0 ? wanted + size : wanted);
    copy_to_all(input, position * own.of[dim], strides, output);
  }
  return arguments.status();
}

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
  const Strides to = strides_of(output);
  std::size_t row = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor& input = arguments.list_tensor(0, i);
    if (!is_skipped(input)) {
      copy_elements(input, 0, strides_of(input), output, row * to.of[dim], to, input.sizes, input.rank);
      row += static_cast<std::size_t>(input.sizes[dim]);
    }
  }
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
