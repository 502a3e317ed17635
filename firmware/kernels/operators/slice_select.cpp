// aten::slice_copy, narrow_copy, select_copy, slice_scatter and select_scatter: parts of tensors.
#include <algorithm>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/copy.hpp"

namespace ethosu_sdk::kernels {
namespace {

// PyTorch's rule for slices: negative positions count from the end, and all are cut to the dimension.
std::int64_t slice_position(std::int64_t position, std::int64_t size) {
  // Far positions are cut first: INT64_MAX means the end.
  const std::int64_t cut = std::clamp<std::int64_t>(position, -size, size);
  return cut < 0 ? cut + size : cut;
}

// A part along one dimension: `count` positions from `start`, `step` apart.
struct Part {
  std::size_t dim = 0;
  std::int64_t start = 0;
  std::int64_t count = 0;
  std::int64_t step = 1;
};

// Parameters from `index` on: dim, start, end, step.
Part read_slice(Arguments& arguments, const Tensor& input, std::size_t index) {
  Part part;
  part.dim = arguments.dim(index, input.rank);
  const std::int64_t wanted_start = arguments.integer_or(index + 1, 0);
  const std::int64_t wanted_end = arguments.integer_or(index + 2, 0x7FFFFFFF);
  part.step = arguments.integer(index + 3);
  if (!arguments.ok() || input.rank == 0 || part.step < 1) {
    arguments.fail(Status::invalid_argument, "a slice of step ", part.step, " of a tensor of rank ",
                   input.rank);
    return {};
  }
  const std::int64_t size = input.sizes[part.dim];
  part.start = slice_position(wanted_start, size);
  const std::int64_t end = slice_position(wanted_end, size);
  part.count = end > part.start ? (end - part.start - 1) / part.step + 1 : 0;
  return part;
}

// One position of a dimension of `size`, negative ones counted from the end.
std::size_t read_position(Arguments& arguments, std::size_t index, std::int64_t size) {
  const std::int64_t wanted = arguments.integer(index);
  if (wanted < -size || wanted >= size) {
    arguments.fail(Status::invalid_argument, "element ", wanted, " of ", size);
    return 0;
  }
  return static_cast<std::size_t>(wanted < 0 ? wanted + size : wanted);
}

View view_of_part(const View& whole, const Part& part) {
  return part_of(whole, part.dim, part.start, part.count, part.step);
}

Status copy_part(Arguments& arguments, const Tensor& input, const Part& part, Tensor& output) {
  arguments.expect_dtype(output, input.dtype, "the output");
  return arguments.ok() ? copy_view(arguments, input, view_of_part(view_of(input), part), output)
                        : arguments.status();
}

void expect_sizes(Arguments& arguments, const Tensor& tensor, const View& part) {
  if (!arguments.ok() ||
      (tensor.rank == part.rank && std::equal(part.sizes, part.sizes + part.rank, tensor.sizes))) {
    return;
  }
  arguments.fail(Status::shape_mismatch, "the source has other sizes than the part that it replaces");
}

// The input with `source` in the place of a part, which `place(the whole)` views.
template <typename Place>
Status scatter(Arguments& arguments, const Tensor& input, const Tensor& source, Tensor& output,
               Place&& place) {
  arguments.expect_dtype(source, input.dtype, "the source");
  arguments.expect_dtype(output, input.dtype, "the output");
  if (!arguments.ok()) {
    return arguments.status();
  }
  expect_sizes(arguments, source, place(view_of(input)));
  if (arguments.resize_like(output, input) == Status::ok) {
    copy_all(input, output);
    copy_elements(source, view_of(source), output, place(view_of(output)));
  }
  return arguments.status();
}

}  // namespace

Status slice_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 6);  // self, dim, start, end, step, out
  const Tensor& input = arguments.tensor(0);
  return copy_part(arguments, input, read_slice(arguments, input, 1), arguments.output(5));
}

Status narrow_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, dim, start, length, out
  const Tensor& input = arguments.tensor(0);
  Part part;
  part.dim = arguments.dim(1, input.rank);
  const std::int64_t wanted = arguments.integer(2);
  part.count = arguments.integer(3);
  const std::int64_t size = arguments.ok() && input.rank != 0 ? input.sizes[part.dim] : -1;
  part.start = wanted < 0 && wanted >= -size ? wanted + size : wanted;
  if (size < 0 || part.start < 0 || part.start > size || part.count < 0 || part.count > size - part.start) {
    return arguments.fail(Status::invalid_argument, part.count, " positions from ", wanted, " on");
  }
  return copy_part(arguments, input, part, arguments.output(4));
}

Status select_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  const std::int64_t size = arguments.ok() && input.rank != 0 ? input.sizes[dim] : 0;
  const std::size_t position = read_position(arguments, 2, size);
  Tensor& output = arguments.output(3);
  return arguments.ok() ? copy_view(arguments, input, slice_at(view_of(input), dim, position), output)
                        : arguments.status();
}

Status slice_scatter_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 7);  // self, src, dim, start, end, step, out
  const Tensor& input = arguments.tensor(0);
  const Tensor& source = arguments.tensor(1);
  const Part part = read_slice(arguments, input, 2);
  return scatter(arguments, input, source, arguments.output(6),
                 [&](const View& whole) { return view_of_part(whole, part); });
}

Status select_scatter_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, src, dim, index, out
  const Tensor& input = arguments.tensor(0);
  const Tensor& source = arguments.tensor(1);
  const std::size_t dim = arguments.dim(2, input.rank);
  const std::int64_t size = arguments.ok() && input.rank != 0 ? input.sizes[dim] : 0;
  const std::size_t position = read_position(arguments, 3, size);
  return scatter(arguments, input, source, arguments.output(4),
                 [&](const View& whole) { return slice_at(whole, dim, position); });
}

}  // namespace ethosu_sdk::kernels
