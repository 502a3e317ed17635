#include "kernels/support/elementwise.hpp"

namespace ethosu_sdk::kernels {

Status resize_to_broadcast(Arguments& arguments, Span<const Tensor* const> inputs, Tensor& output) {
  std::size_t rank = 0;
  for (const Tensor* input : inputs) {
    rank = input->rank > rank ? input->rank : rank;
  }
  std::int32_t sizes[max_rank];
  for (std::size_t i = 0; i < rank; ++i) {
    sizes[i] = 1;
    for (const Tensor* input : inputs) {
      const std::int32_t size = i + input->rank < rank ? 1 : input->sizes[i + input->rank - rank];
      if (size != 1 && sizes[i] != 1 && size != sizes[i]) {
        return arguments.fail(Status::shape_mismatch, "sizes ", sizes[i], " and ", size, " do not broadcast");
      }
      sizes[i] = sizes[i] == 1 ? size : sizes[i];
    }
  }
  return arguments.resize(output, sizes, rank);
}

Status resize_to_broadcast(Arguments& arguments, const Tensor& left, const Tensor& right, Tensor& output) {
  const Tensor* const inputs[] = {&left, &right};
  return resize_to_broadcast(arguments, {inputs, 2}, output);
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
