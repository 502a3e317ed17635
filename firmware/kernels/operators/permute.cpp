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
  std::size_t order[max_rank] = {};
  bool seen[max_rank] = {};
  for (std::size_t i = 0; i < count; ++i) {
    order[i] = arguments.another_dim(dims[i], input.rank, seen);
  }
  return copy_view(arguments, input, chosen_dims(view_of(input), order, count), output);
}

Status expand_copy_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, size, implicit, out
  const Tensor& input = arguments.tensor(0);
  std::int64_t wanted[max_rank];
  const std::size_t rank = arguments.integers(1, wanted, max_rank);
  static_cast<void>(arguments.boolean(2));
  Tensor& output = arguments.output(3);
  arguments.expect_dtype(output, input.dtype, "the output");
  if (rank < input.rank) {
    return arguments.fail(Status::invalid_argument, "a tensor of rank ", input.rank, " expanded to ", rank);
  }
  std::int32_t sizes[max_rank] = {};
  for (std::size_t i = 0; i < rank; ++i) {
    const bool is_new = i + input.rank < rank;
    const std::int64_t had = is_new ? 1 : input.sizes[i + input.rank - rank];
    const std::int64_t size = wanted[i] == -1 && !is_new ? had : wanted[i];
    if (size < 0 || size > 0x7FFFFFFF || (had != 1 && had != size)) {
      return arguments.fail(Status::invalid_argument, "size ", had, " expanded to ", wanted[i]);
    }
    sizes[i] = static_cast<std::int32_t>(size);
  }
  return copy_view(arguments, input, broadcast_view(input, sizes, rank), output);
}

}  // namespace ethosu_sdk::kernels
