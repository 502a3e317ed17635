// One spatial dimension of a convolution or of pooling.
#pragma once

#include <cstdint>

namespace ethosu_sdk::kernels {

struct SpatialAxis {
  std::int64_t input = 1;
  std::int64_t output = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;

  // What the window covers, gaps included.
  std::int64_t extent() const { return dilation * (kernel - 1) + 1; }
  // Where the window of an output element begins; negative: in the padding.
  std::int64_t start(std::int64_t at) const { return at * stride - padding; }
  // How many windows fit the padded input, or how many elements a transposed convolution makes.
  std::int64_t windows() const {
    const std::int64_t room = input + 2 * padding - extent();
    return room < 0 ? 0 : room / stride + 1;
  }
  std::int64_t transposed_size(std::int64_t output_padding) const {
    return (input - 1) * stride - 2 * padding + extent() + output_padding;
  }
};

}  // namespace ethosu_sdk::kernels
