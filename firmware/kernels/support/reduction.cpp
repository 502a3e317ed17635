#include "kernels/support/reduction.hpp"

namespace ethosu_sdk::kernels {

Reduction reduction_over(Arguments& arguments, const Tensor& input, const std::int64_t* dims,
                         std::size_t count) {
  Reduction reduction;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t dim = arguments.checked_dim(dims[i], input.rank);
    if (reduction.reduced[dim]) {
      arguments.fail(Status::invalid_argument, "dimension ", dim, " twice");
    }
    reduction.reduced[dim] = true;
  }
  reduction.rank = input.rank;
  for (std::size_t i = 0; i < input.rank; ++i) {
    const bool reduced = count == 0 || reduction.reduced[i];
    reduction.reduced[i] = reduced;
    reduction.kept_sizes[i] = reduced ? 1 : input.sizes[i];
    reduction.reduced_sizes[i] = reduced ? input.sizes[i] : 1;
    reduction.count *= static_cast<std::size_t>(reduction.reduced_sizes[i]);
  }
  reduction.from = strides_of(input);
  return reduction;
}

Reduction read_reduction(Arguments& arguments, const Tensor& input, std::size_t index) {
  std::int64_t dims[max_rank];
  std::size_t count = 0;
  if (arguments.is_integer(index)) {
    dims[0] = arguments.integer(index);
    count = 1;
  } else if (!arguments.is_none(index)) {
    count = arguments.integers(index, dims, max_rank);
  }
  return reduction_over(arguments, input, dims, count);
}

Strides resize_to_kept(Arguments& arguments, const Reduction& reduction, bool keep_dims, Tensor& output) {
  std::int32_t sizes[max_rank] = {};
  std::size_t dims[max_rank] = {};  // of the output, by the input's
  std::size_t rank = 0;
  for (std::size_t i = 0; i < reduction.rank; ++i) {
    dims[i] = rank;
    if (keep_dims || !reduction.reduced[i]) {
      sizes[rank++] = reduction.kept_sizes[i];
    }
  }
  Strides strides;
  if (arguments.resize(output, sizes, rank) == Status::ok) {
    const Strides own = strides_of(output);
    for (std::size_t i = 0; i < reduction.rank; ++i) {
      strides.of[i] = reduction.reduced[i] ? 0 : own.of[dims[i]];
    }
  }
  return strides;
}

}  // namespace ethosu_sdk::kernels
