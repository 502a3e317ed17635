// Copies of rows in vectors.
//
// The function copies elements of `Bytes` bytes from the first on and returns how many: at least 0, at most
// `count`. They are `from_step` and `to_step` elements apart. helium/ implements it for Cortex-M with MVE;
// that of scalar/ copies nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ethosu_sdk::kernels {

template <std::size_t Bytes>
std::size_t copy_vectors(const std::uint8_t* from, std::size_t from_step, std::uint8_t* to,
                         std::size_t to_step, std::size_t count);

}  // namespace ethosu_sdk::kernels
