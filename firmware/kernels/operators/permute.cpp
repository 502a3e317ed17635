// aten::permute_copy and expand_copy.
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/copy.hpp"

namespace ethosu_sdk::kernels {

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
