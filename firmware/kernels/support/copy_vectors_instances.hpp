// The instances of copy_vectors: included behind their definition in helium/ and in scalar/.
#pragma once

namespace ethosu_sdk::kernels {

template std::size_t copy_vectors<1>(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t,
                                     std::size_t);
template std::size_t copy_vectors<2>(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t,
                                     std::size_t);
template std::size_t copy_vectors<4>(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t,
                                     std::size_t);
template std::size_t copy_vectors<8>(const std::uint8_t*, std::size_t, std::uint8_t*, std::size_t,
                                     std::size_t);

}  // namespace ethosu_sdk::kernels
