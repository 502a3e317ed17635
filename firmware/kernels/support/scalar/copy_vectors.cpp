// For processors without MVE: all elements are left to the caller's loop.
#include "kernels/support/copy_vectors.hpp"

namespace ethosu_sdk::kernels {

template <std::size_t Bytes>
std::size_t copy_vectors(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t, std::size_t) {
  return 0;
}

template std::size_t copy_vectors<1>(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t,
                                     std::size_t);
template std::size_t copy_vectors<2>(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t,
                                     std::size_t);
template std::size_t copy_vectors<4>(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t,
                                     std::size_t);
template std::size_t copy_vectors<8>(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t,
                                     std::size_t);

}  // namespace ethosu_sdk::kernels
