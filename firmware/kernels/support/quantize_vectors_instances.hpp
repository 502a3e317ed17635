// The instances of quantize_vectors and dequantize_vectors: included behind their definition in helium/ and
// in scalar/.
#pragma once

namespace ethosu_sdk::kernels {

template std::size_t quantize_vectors(const float*, std::uint8_t*, std::size_t, std::size_t, float,
                                      std::int32_t, std::uint8_t, std::uint8_t);
template std::size_t quantize_vectors(const float*, std::int8_t*, std::size_t, std::size_t, float,
                                      std::int32_t, std::int8_t, std::int8_t);
template std::size_t quantize_vectors(const float*, std::int16_t*, std::size_t, std::size_t, float,
                                      std::int32_t, std::int16_t, std::int16_t);
template std::size_t quantize_vectors(const float*, std::int32_t*, std::size_t, std::size_t, float,
                                      std::int32_t, std::int32_t, std::int32_t);
template std::size_t dequantize_vectors(const std::uint8_t*, float*, std::size_t, float, std::int32_t);
template std::size_t dequantize_vectors(const std::int8_t*, float*, std::size_t, float, std::int32_t);
template std::size_t dequantize_vectors(const std::int16_t*, float*, std::size_t, float, std::int32_t);
template std::size_t dequantize_vectors(const std::int32_t*, float*, std::size_t, float, std::int32_t);

}  // namespace ethosu_sdk::kernels
