#include "kernels/support/elements.hpp"

#include <type_traits>

#include "kernels/support/convert.hpp"
#include "kernels/support/dispatch.hpp"

namespace ethosu_sdk::kernels {
namespace {

template <typename Compute, typename Element>
Compute load(const void* data, std::size_t index) {
  if constexpr (std::is_same_v<Element, bool>) {
    // Whatever byte the file holds.
    return static_cast<const std::uint8_t*>(data)[index] != 0 ? Compute{1} : Compute{0};
  } else {
    return static_cast<Compute>(static_cast<const Element*>(data)[index]);
  }
}

template <typename Compute, typename Element>
void store(void* data, std::size_t index, Compute value) {
  static_cast<Element*>(data)[index] = convert<Element>(value);
}

}  // namespace

template <typename Compute>
Load<Compute> load_of(ScalarType dtype) {
  Load<Compute> found = dtype == ScalarType::boolean ? load<Compute, bool> : nullptr;
  const auto take = [&](auto type) { found = load<Compute, type_of<decltype(type)>>; };
  if constexpr (std::is_integral_v<Compute>) {
    for_integer(dtype, take);
  } else {
    for_real(dtype, take);
  }
  return found;
}

template <typename Compute>
Store<Compute> store_of(ScalarType dtype) {
  Store<Compute> found = dtype == ScalarType::boolean ? store<Compute, bool> : nullptr;
  for_real(dtype, [&](auto type) { found = store<Compute, type_of<decltype(type)>>; });
  return found;
}

template Load<std::int64_t> load_of(ScalarType);
template Load<float> load_of(ScalarType);
template Load<double> load_of(ScalarType);
template Store<std::int64_t> store_of(ScalarType);
template Store<float> store_of(ScalarType);
template Store<double> store_of(ScalarType);

bool is_integral(ScalarType dtype) {
  return dtype != ScalarType::float32 && dtype != ScalarType::float64;
}

ScalarType promote(ScalarType left, ScalarType right) {
  if (left == right) {
    return left;
  }
  if (!is_integral(left) || !is_integral(right)) {
    return left == ScalarType::float64 || right == ScalarType::float64 ? ScalarType::float64
                                                                       : ScalarType::float32;
  }
  if (left == ScalarType::boolean || right == ScalarType::boolean) {
    return left == ScalarType::boolean ? right : left;
  }
  if (element_bytes(left) != element_bytes(right)) {
    return element_bytes(left) > element_bytes(right) ? left : right;
  }
  return ScalarType::int16;  // uint8 and int8
}

ScalarType promote_with_scalar(ScalarType tensor, const Scalar& scalar) {
  if (!is_integral(tensor) || scalar.type == ScalarType::boolean) {
    return tensor;
  }
  if (scalar.is_real()) {
    return ScalarType::float32;
  }
  return tensor == ScalarType::boolean ? ScalarType::int64 : tensor;
}

template <>
std::int64_t scalar_as<std::int64_t>(const Scalar& scalar) {
  return scalar.is_real() ? truncate<std::int64_t>(scalar.real) : scalar.integer;
}

}  // namespace ethosu_sdk::kernels
