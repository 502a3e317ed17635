// SHA-256 (FIPS 180-4).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ethosu_sdk::app {

constexpr std::size_t sha256_hex_size = 65;  // 64 digits and a NUL

// Writes the digest of `data` as lower-case hexadecimal digits.
void sha256_hex(const std::uint8_t* data, std::size_t size, char (&hex)[sha256_hex_size]);

}  // namespace ethosu_sdk::app
