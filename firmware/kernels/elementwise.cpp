#include "kernels/elementwise.hpp"

namespace ethosu_sdk::kernels {

Strides broadcast_strides(const Tensor& tensor, std::size_t rank) {
  const Strides own = strides_of(tensor);
  Strides strides;
  for (std::size_t i = 0; i < tensor.rank; ++i) {
    const std::size_t dim = rank - tensor.rank + i;
    strides.of[dim] = tensor.sizes[i] == 1 ? 0 : own.of[i];
  }
  return strides;
}

Status resize_to_broadcast(Arguments& arguments, const Tensor& left, const Tensor& right, Tensor& output) {
  const std::size_t rank = left.rank > right.rank ? left.rank : right.rank;
  std::int32_t sizes[max_rank];
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int32_t from_left = i + left.rank < rank ? 1 : left.sizes[i + left.rank - rank];
    const std::int32_t from_right = i + right.rank < rank ? 1 : right.sizes[i + right.rank - rank];
    if (from_left != from_right && from_left != 1 && from_right != 1) {
      return arguments.fail(Status::shape_mismatch, "sizes ", from_left, " and ", from_right,
                            " do not broadcast");
    }
    sizes[i] = from_left == 1 ? from_right : from_left;
  }
  return arguments.resize(output, sizes, rank);
}

Status check_result_dtype(Arguments& arguments, ScalarType common, const Tensor& output) {
  const bool loses_fraction = !is_integral(common) && is_integral(output.dtype);
  const bool becomes_bool = common != ScalarType::boolean && output.dtype == ScalarType::boolean;
  return loses_fraction || becomes_bool
             ? arguments.fail(Status::invalid_argument, "a result of ", scalar_type_name(common),
                              " for an output of ", scalar_type_name(output.dtype))
             : arguments.status();
}

}  // namespace ethosu_sdk::kernels
