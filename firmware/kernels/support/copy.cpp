#include "kernels/support/copy.hpp"

#include <cstring>

#include "kernels/support/walk.hpp"

namespace ethosu_sdk::kernels {
namespace {

// Copies elements of `Bytes` bytes; from and to may be any layout.
template <std::size_t Bytes>
void copy_strided(const Tensor& input, std::size_t from, const Strides& from_strides, Tensor& output,
                  std::size_t to, const Strides& to_strides, const std::int32_t* sizes, std::size_t rank) {
  const auto* const source = input.as<const std::uint8_t>();
  auto* const destination = output.as<std::uint8_t>();
  const Strides strides[] = {from_strides, to_strides};
  // Sums of offsets wrap: a stride may be negative.
  walk(sizes, rank, strides, [=](const std::size_t(&at)[2]) {
    std::memmove(destination + (to + at[1]) * Bytes, source + (from + at[0]) * Bytes, Bytes);
  });
}

using CopyStrided = void (*)(const Tensor&, std::size_t, const Strides&, Tensor&, std::size_t, const Strides&,
                             const std::int32_t*, std::size_t);

CopyStrided copy_for(ScalarType dtype) {
  switch (element_bytes(dtype)) {
    case 1:
      return copy_strided<1>;
    case 2:
      return copy_strided<2>;
    case 4:
      return copy_strided<4>;
    default:
      return copy_strided<8>;
  }
}

}  // namespace

void copy_elements(const Tensor& input, std::size_t from, const Strides& from_strides, Tensor& output,
                   std::size_t to, const Strides& to_strides, const std::int32_t* sizes, std::size_t rank) {
  copy_for(output.dtype)(input, from, from_strides, output, to, to_strides, sizes, rank);
}

void copy_to_all(const Tensor& input, std::size_t from, const Strides& strides, Tensor& output) {
  copy_elements(input, from, strides, output, 0, strides_of(output), output.sizes, output.rank);
}

void copy_all(const Tensor& input, Tensor& output) {
  if (same_layout(input, output)) {
    copy_bytes(input, output);
  } else {
    copy_to_all(input, 0, strides_of(input), output);
  }
}

void copy_bytes(const Tensor& input, Tensor& output) {
  if (output.byte_count() != 0) {
    std::memmove(output.data, input.data, output.byte_count());
  }
}

bool same_layout(const Tensor& left, const Tensor& right) {
  for (std::size_t i = 0; i < left.rank; ++i) {
    if (left.dim_order[i] != right.dim_order[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace ethosu_sdk::kernels
