#include "app/sha256.hpp"

#include <cstring>

namespace ethosu_sdk::app {
namespace {

constexpr std::size_t length_bytes = 8;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

constexpr std::uint32_t rotate_right(std::uint32_t value, unsigned count) {
  return value >> count | value << (32 - count);
}

std::uint32_t big_endian(const std::uint8_t* data) {
  return std::uint32_t{data[0]} << 24 | std::uint32_t{data[1]} << 16 | std::uint32_t{data[2]} << 8 | data[3];
}

void expand(const std::uint8_t* block, std::uint32_t (&w)[64]) {
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = big_endian(block + 4 * i);
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15];
    const std::uint32_t b = w[i - 2];
    w[i] = w[i - 16] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) + w[i - 7] +
           (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
  }
}

}  // namespace

void Sha256::compress(const std::uint8_t* block) {
  std::uint32_t w[64];
  expand(block, w);
  std::uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3];
  std::uint32_t e = state_[4], f = state_[5], g = state_[6], h = state_[7];
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    const std::uint32_t first = h + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
                                choice + round_constants[i] + w[i];
    const std::uint32_t second = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) + majority;
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::uint32_t result[8] = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) {
    state_[i] += result[i];
  }
}

void Sha256::add(std::uint8_t byte) {
  block_[pending()] = byte;
  ++bytes_;
  if (pending() == 0) {
    compress(block_);
  }
}

void Sha256::add(const std::uint8_t* data, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    if (pending() == 0 && size - done >= block_bytes) {
      compress(data + done);
      bytes_ += block_bytes;
      done += block_bytes;
    } else {
      add(data[done++]);
    }
  }
}

// Behind the message stand 0x80, zeros, and its length in bits, up to the end of a block.
void Sha256::digest(std::uint8_t (&result)[sha256_bytes]) const {
  Sha256 last = *this;
  last.add(0x80);
  while (last.pending() != block_bytes - length_bytes) {
    last.add(0);
  }
  for (std::size_t i = 0; i < length_bytes; ++i) {
    last.add(static_cast<std::uint8_t>(bytes_ * 8 >> (8 * (length_bytes - 1 - i))));
  }
  for (std::size_t i = 0; i < sha256_bytes; ++i) {
    result[i] = static_cast<std::uint8_t>(last.state_[i / 4] >> (24 - 8 * (i % 4)));
  }
}

void sha256_digits(const std::uint8_t (&digest)[sha256_bytes], char (&hex)[sha256_hex_size]) {
  constexpr char digits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < sha256_bytes; ++i) {
    hex[2 * i] = digits[digest[i] >> 4];
    hex[2 * i + 1] = digits[digest[i] & 0xF];
  }
  hex[sha256_hex_size - 1] = '\0';
}

void sha256_hex(const std::uint8_t* data, std::size_t size, char (&hex)[sha256_hex_size]) {
  Sha256 sha256;
  sha256.add(data, size);
  std::uint8_t digest[sha256_bytes];
  sha256.digest(digest);
  sha256_digits(digest, hex);
}

}  // namespace ethosu_sdk::app
