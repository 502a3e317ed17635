#include "kernels/support/layout.hpp"

namespace ethosu_sdk::kernels {

Strides strides_of(const Tensor& tensor) {
  Strides strides;
  std::size_t stride = 1;
  for (std::size_t i = tensor.rank; i-- > 0;) {
    const std::size_t dim = tensor.dim_order[i];
    strides.of[dim] = stride;
    stride *= static_cast<std::size_t>(tensor.sizes[dim]);
  }
  return strides;
}

Lanes lanes_along(const Tensor& tensor, std::size_t dim) {
  Lanes lanes;
  bool inside = false;
  for (std::size_t i = 0; i < tensor.rank; ++i) {
    const auto size = static_cast<std::size_t>(tensor.sizes[tensor.dim_order[i]]);
    if (tensor.dim_order[i] == dim) {
      lanes.count = size;
      inside = true;
    } else if (inside) {
      lanes.stride *= size;
    } else {
      lanes.outer *= size;
    }
  }
  return lanes;
}

}  // namespace ethosu_sdk::kernels
