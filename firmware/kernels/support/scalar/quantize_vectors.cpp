// For processors without MVE: all elements are left to the caller's loop.
#include "kernels/support/quantize_vectors.hpp"

namespace ethosu_sdk::kernels {

template <typename Integer>
std::size_t quantize_vectors(const float*, Integer*, std::size_t, float, std::int32_t) {
  return 0;
}

template <typename Integer>
std::size_t dequantize_vectors(const Integer*, float*, std::size_t, float, std::int32_t) {
  return 0;
}

template std::size_t quantize_vectors(const float*, std::uint8_t*, std::size_t, float, std::int32_t);
template std::size_t quantize_vectors(const float*, std::int8_t*, std::size_t, float, std::int32_t);
template std::size_t quantize_vectors(const float*, std::int16_t*, std::size_t, float, std::int32_t);
template std::size_t quantize_vectors(const float*, std::int32_t*, std::size_t, float, std::int32_t);
template std::size_t dequantize_vectors(const std::uint8_t*, float*, std::size_t, float, std::int32_t);
template std::size_t dequantize_vectors(const std::int8_t*, float*, std::size_t, float, std::int32_t);
template std::size_t dequantize_vectors(const std::int16_t*, float*, std::size_t, float, std::int32_t);
template std::size_t dequantize_vectors(const std::int32_t*, float*, std::size_t, float, std::int32_t);

}  // namespace ethosu_sdk::kernels
