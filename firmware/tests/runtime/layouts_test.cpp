// Quantising and dequantising from one layout to another: the values of one layout, in the other's order.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/kernels.hpp"
#include "tests/support/check.hpp"
#include "tests/support/values.hpp"

namespace {

using namespace ethosu_sdk;

constexpr std::uint8_t last[] = {0, 2, 3, 1};
constexpr std::uint8_t turned[] = {0, 3, 1, 2};

// The place of element [n, c, h, w] in memory.
std::size_t place(const Tensor& tensor, const std::int32_t (&index)[4]) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint8_t dim = tensor.dim_order[i];
    at = at * static_cast<std::size_t>(tensor.sizes[dim]) + static_cast<std::size_t>(index[dim]);
  }
  return at;
}

template <typename Element>
bool same_values(const Tensor& one, const Tensor& other) {
  for (std::int32_t n = 0; n < one.sizes[0]; ++n) {
    for (std::int32_t c = 0; c < one.sizes[1]; ++c) {
      for (std::int32_t h = 0; h < one.sizes[2]; ++h) {
        for (std::int32_t w = 0; w < one.sizes[3]; ++w) {
          const Element* const left = one.as<const Element>() + place(one, {n, c, h, w});
          const Element* const right = other.as<const Element>() + place(other, {n, c, h, w});
          if (std::memcmp(left, right, sizeof(Element)) != 0) {
            return false;
          }
        }
      }
    }
  }
  return true;
}

template <typename Integer>
void test(const std::vector<std::int32_t>& shape, ScalarType dtype, const std::uint8_t* order,
          std::int64_t minimum, std::int64_t maximum) {
  std::size_t count = 1;
  for (const std::int32_t size : shape) {
    count *= static_cast<std::size_t>(size);
  }
  std::vector<float> floats(count), back(count), back_plain(count);
  std::vector<Integer> integers(count), plain(count);
  for (std::size_t i = 0; i < count; ++i) {
    floats[i] = static_cast<float>(i * 37 % 401) * 0.25F - 40.0F;  // with ties
  }
  TensorValue from(shape, ScalarType::float32, floats.data()), to(shape, dtype, integers.data()),
      same(shape, dtype, plain.data()), again(shape, ScalarType::float32, back.data()),
      again_plain(shape, ScalarType::float32, back_plain.data());
  to.tensor.dim_order = order;
  Value scale = real(0.5), zero = integer(3), low = integer(minimum), high = integer(maximum),
        type = integer(static_cast<std::int64_t>(dtype)), none;
  const auto quantize = [&](TensorValue& result) {
    return call(kernels::quantize_per_tensor_out,
                {&from.value, &scale, &zero, &low, &high, &type, &result.value});
  };
  const auto dequantize = [&](TensorValue& source, TensorValue& result) {
    return call(kernels::dequantize_per_tensor_out,
                {&source.value, &scale, &zero, &low, &high, &type, &none, &result.value});
  };
  CHECK(quantize(to) == Status::ok && quantize(same) == Status::ok);
  CHECK(same_values<Integer>(to.tensor, same.tensor));
  CHECK(dequantize(to, again) == Status::ok && dequantize(same, again_plain) == Status::ok);
  CHECK(back == back_plain);
}

}  // namespace

int main() {
  for (const std::uint8_t* const order : {last, turned}) {
    for (const std::vector<std::int32_t>& shape : std::vector<std::vector<std::int32_t>>{
             {1, 3, 5, 7}, {2, 3, 40, 41}, {1, 64, 3, 5}, {3, 1, 4, 4}, {2, 18, 1, 33}, {1, 4, 0, 2}}) {
      test<std::int8_t>(shape, ScalarType::int8, order, -128, 127);
      test<std::int8_t>(shape, ScalarType::int8, order, -127, 127);
      test<std::uint8_t>(shape, ScalarType::uint8, order, 0, 255);
      test<std::int16_t>(shape, ScalarType::int16, order, -32767, 32767);
    }
  }
  return host::failed_checks == 0 ? 0 : 1;
}
