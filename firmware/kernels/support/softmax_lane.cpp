#include <algorithm>
#include <cmath>

#include "kernels/support/int8_vectors.hpp"

namespace ethosu_sdk::kernels {

void softmax_lane_by_element(const float (&exponentials)[256], const std::int8_t* from, std::int8_t* to,
                             std::size_t count, std::size_t stride) {
  std::int32_t maximum = -128;
  for (std::size_t i = 0; i < count; ++i) {
    maximum = std::max(maximum, std::int32_t{from[i * stride]});
  }
  float sums[4] = {};
  for (std::size_t i = 0; i < count; ++i) {
    sums[i % 4] += exponentials[maximum - from[i * stride]];
  }
  const float factor = 256.0F / ((sums[0] + sums[1]) + (sums[2] + sums[3]));
  for (std::size_t i = 0; i < count; ++i) {
    const float share = std::nearbyint(exponentials[maximum - from[i * stride]] * factor);
    to[i * stride] = static_cast<std::int8_t>(std::min(share - 128.0F, 127.0F));
  }
}

}  // namespace ethosu_sdk::kernels
