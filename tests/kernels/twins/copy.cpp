// The vectors of copy_vectors.hpp against copies element by element, with random steps and lengths.
#include <cstring>

#include "kernels/support/copy_vectors.hpp"
#include "random.hpp"
#include "start.hpp"

namespace {

using ethosu_sdk::kernels::copy_vectors;

constexpr std::size_t cases = 2000;
constexpr std::size_t longest = 100;
constexpr std::size_t room = 100 * 1024;

alignas(8) std::uint8_t memory[room];
alignas(8) std::uint8_t copied[room];
alignas(8) std::uint8_t wanted[room];

std::uint32_t step_of(Random& random, std::uint32_t most) {
  return random.below(2) == 0 ? 1 : random.below(random.below(4) == 0 ? most : 20);
}

template <std::size_t Bytes>
void test(const char* name) {
  Random random;
  std::uint32_t vectorised = 0, unlike = 0;
  for (std::size_t i = 0; i < cases; ++i) {
    const std::uint32_t count = random.below(longest);
    const std::uint32_t most = room / Bytes / longest;
    const std::uint32_t from_step = step_of(random, most), to_step = step_of(random, most);
    const std::size_t used = (count * to_step + 16) * Bytes;  // and what lies behind
    std::memset(copied, 0, used);
    std::memset(wanted, 0, used);
    const std::size_t done = copy_vectors<Bytes>(memory, from_step, copied, to_step, count);
    vectorised += done > 0 ? 1 : 0;
    for (std::size_t k = 0; k < done; ++k) {
      std::memcpy(wanted + k * to_step * Bytes, memory + k * from_step * Bytes, Bytes);
    }
    unlike += done <= count && std::memcmp(copied, wanted, used) == 0 ? 0 : 1;
  }
  // Rows that overlap are left to the caller, those side by side are not.
  unlike += copy_vectors<Bytes>(memory, 1, memory + 64 * Bytes, 1, 64) == 64 ? 0 : 1;
  unlike += copy_vectors<Bytes>(memory, 1, memory + 8, 1, 64) == 0 ? 0 : 1;
  unlike += copy_vectors<Bytes>(memory + 8, 1, memory, 1, 64) == 0 ? 0 : 1;
  print("copy ");
  print(name);
  print(" cases ");
  print(cases);
  print(" vectorised ");
  print(vectorised);
  print(" unlike ");
  print(unlike);
  print("\n");
}

}  // namespace

int main() {
  Random random;
  for (std::uint8_t& byte : memory) {
    byte = static_cast<std::uint8_t>(random.next());
  }
  test<1>("bytes1");
  test<2>("bytes2");
  test<4>("bytes4");
  test<8>("bytes8");
  return 0;
}
