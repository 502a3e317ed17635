#include "kernels/support/copy.hpp"

#include <cstring>

#include "kernels/support/walk.hpp"

namespace ethosu_sdk::kernels {
namespace {

// Copies elements of `Bytes` bytes; from and to may be any layout.
template <std::size_t Bytes>
void copy_strided(const Tensor& input, const View& from, Tensor& output, const View& to) {
  const auto* const source = input.as<const std::uint8_t>();
  auto* const destination = output.as<std::uint8_t>();
  walk({&to, &from}, [=](const std::size_t(&at)[2]) {
    std::memmove(destination + at[0] * Bytes, source + at[1] * Bytes, Bytes);
  });
}

using CopyStrided = void (*)(const Tensor&, const View&, Tensor&, const View&);

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

void copy_elements(const Tensor& input, const View& from, Tensor& output, const View& to) {
  copy_for(output.dtype)(input, from, output, to);
}

void copy_element(const Tensor& input, std::size_t from, Tensor& output, std::size_t to) {
  const std::size_t bytes = element_bytes(output.dtype);
  std::memmove(output.as<std::uint8_t>() + to * bytes, input.as<const std::uint8_t>() + from * bytes, bytes);
}

Status copy_view(Arguments& arguments, const Tensor& input, const View& from, Tensor& output) {
  arguments.expect_dtype(output, input.dtype, "the output");
  if (arguments.resize(output, from.sizes, from.rank) == Status::ok) {
    copy_elements(input, from, output, view_of(output));
  }
  return arguments.status();
}

void copy_all(const Tensor& input, Tensor& output) {
  if (same_layout(input, output)) {
    copy_bytes(input, output);
  } else {
    copy_elements(input, view_of(input), output, view_of(output));
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
