#include "kernels/support/reduction.hpp"

namespace ethosu_sdk::kernels {

Reduction reduction_over(Arguments& arguments, const Tensor& input, const std::int64_t* dims,
                         std::size_t count) {
  Reduction reduction;
  for (std::size_t i = 0; i < count; ++i) {
    arguments.another_dim(dims[i], input.rank, reduction.reduced);
  }
  reduction.results = view_of(input);
  reduction.elements = reduction.results;
  for (std::size_t i = 0; i < input.rank; ++i) {
    reduction.reduced[i] = count == 0 || reduction.reduced[i];
    reduction.count *= reduction.reduced[i] ? static_cast<std::size_t>(input.sizes[i]) : 1;
    (reduction.reduced[i] ? reduction.results : reduction.elements).sizes[i] = 1;
  }
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

View resize_to_kept(Arguments& arguments, const Reduction& reduction, bool keep_dims, Tensor& output) {
  const View& results = reduction.results;
  std::int32_t sizes[max_rank] = {};
  std::size_t dims[max_rank] = {};  // of the output, by the input's
  std::size_t rank = 0;
  for (std::size_t i = 0; i < results.rank; ++i) {
    dims[i] = rank;
    if (keep_dims || !reduction.reduced[i]) {
      sizes[rank++] = results.sizes[i];
    }
  }
  View to;
  if (arguments.resize(output, sizes, rank) == Status::ok) {
    const View own = view_of(output);
    for (std::size_t i = 0; i < results.rank; ++i) {
      to.append(results.sizes[i], reduction.reduced[i] ? 0 : own.strides[dims[i]]);
    }
  }
  return to;
}

}  // namespace ethosu_sdk::kernels
