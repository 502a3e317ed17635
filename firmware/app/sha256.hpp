// SHA-256 (FIPS 180-4).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ethosu_sdk::app {

constexpr std::size_t sha256_bytes = 32;
constexpr std::size_t sha256_hex_size = 2 * sha256_bytes + 1;  // digits and a NUL

// A digest of bytes that come piece by piece.
class Sha256 {
 public:
  void add(std::uint8_t byte);
  void add(const std::uint8_t* data, std::size_t size);
  // The digest of all that was added. More may be added afterwards.
  void digest(std::uint8_t (&result)[sha256_bytes]) const;

 private:
  static constexpr std::size_t block_bytes = 64;

  void compress(const std::uint8_t* block);
  std::size_t pending() const { return static_cast<std::size_t>(bytes_ % block_bytes); }

  std::uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::uint64_t bytes_ = 0;
  std::uint8_t block_[block_bytes];  // the `pending` bytes of a block that is not full
};

// Writes `digest` as lower-case hexadecimal digits.
void sha256_digits(const std::uint8_t (&digest)[sha256_bytes], char (&hex)[sha256_hex_size]);

// Writes the digest of `data` as lower-case hexadecimal digits.
void sha256_hex(const std::uint8_t* data, std::size_t size, char (&hex)[sha256_hex_size]);

}  // namespace ethosu_sdk::app
