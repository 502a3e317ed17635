// For processors without MVE: all elements are left to the caller's loop.
#include "kernels/support/quantize_vectors.hpp"

namespace ethosu_sdk::kernels {

template <typename Integer>
std::size_t quantize_vectors(const float*, Integer*, std::size_t, std::size_t, float, std::int32_t, Integer,
                             Integer) {
  return 0;
}

template <typename Integer>
std::size_t dequantize_vectors(const Integer*, float*, std::size_t, float, std::int32_t) {
  return 0;
}

}  // namespace ethosu_sdk::kernels

#include "kernels/support/quantize_vectors_instances.hpp"
