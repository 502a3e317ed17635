// For processors without MVE: all elements are left to the caller's loop.
#include "kernels/support/copy_vectors.hpp"

namespace ethosu_sdk::kernels {

template <std::size_t Bytes>
std::size_t copy_vectors(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t, std::size_t) {
  return 0;
}

}  // namespace ethosu_sdk::kernels

#include "kernels/support/copy_vectors_instances.hpp"
