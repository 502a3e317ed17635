#include "app/sha256.hpp"

#include <cstring>

namespace ethosu_sdk::app {
namespace {

constexpr std::size_t block_bytes = 64;
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

struct State {
  std::uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
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

void compress(State& state, const std::uint8_t* block) {
  std::uint32_t w[64];
  expand(block, w);
  auto [a, b, c, d, e, f, g, h] = state.h;
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
    state.h[i] += result[i];
  }
}

// The rest of the message, 0x80, zeros, and the length in bits: one block or two.
void finish(State& state, const std::uint8_t* rest, std::size_t rest_size, std::uint64_t message_bytes) {
  std::uint8_t tail[2 * block_bytes] = {};
  std::memcpy(tail, rest, rest_size);
  tail[rest_size] = 0x80;
  const std::size_t tail_bytes = rest_size < block_bytes - length_bytes ? block_bytes : 2 * block_bytes;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    tail[tail_bytes - 1 - i] = static_cast<std::uint8_t>(message_bytes * 8 >> (8 * i));
  }
  for (std::size_t offset = 0; offset < tail_bytes; offset += block_bytes) {
    compress(state, tail + offset);
  }
}

}  // namespace

void sha256_hex(const std::uint8_t* data, std::size_t size, char (&hex)[sha256_hex_size]) {
  State state;
  const std::size_t whole = size / block_bytes * block_bytes;
  for (std::size_t offset = 0; offset < whole; offset += block_bytes) {
    compress(state, data + offset);
  }
  finish(state, data + whole, size - whole, size);
  constexpr char digits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < sha256_hex_size - 1; ++i) {
    hex[i] = digits[state.h[i / 8] >> (28 - 4 * (i % 8)) & 0xF];
  }
  hex[sha256_hex_size - 1] = '\0';
}

}  // namespace ethosu_sdk::app
