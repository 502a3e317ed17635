#include "kernels/support/elements.hpp"

#include <type_traits>

#include "kernels/support/convert.hpp"

namespace ethosu_sdk::kernels {
namespace {

template <typename Compute, typename Element>
Compute load(const void* data, std::size_t index) {
  return static_cast<Compute>(static_cast<const Element*>(data)[index]);
}

template <typename Compute>
Compute load_bool(const void* data, std::size_t index) {
  return static_cast<const std::uint8_t*>(data)[index] != 0 ? Compute{1}
                                                            : Compute{0};  // whatever the file holds
}

template <typename Compute, typename Element>
void store(void* data, std::size_t index, Compute value) {
  static_cast<Element*>(data)[index] = convert<Element>(value);
}

}  // namespace

template <typename Compute>
Load<Compute> load_of(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::boolean:
      return load_bool<Compute>;
    case ScalarType::uint8:
      return load<Compute, std::uint8_t>;
    case ScalarType::int8:
      return load<Compute, std::int8_t>;
    case ScalarType::int16:
      return load<Compute, std::int16_t>;
    case ScalarType::int32:
      return load<Compute, std::int32_t>;
    case ScalarType::int64:
      return load<Compute, std::int64_t>;
    default:
      break;
  }
  if constexpr (!std::is_integral_v<Compute>) {
    if (dtype == ScalarType::float32) {
      return load<Compute, float>;
    }
    if (dtype == ScalarType::float64) {
      return load<Compute, double>;
    }
  }
  return nullptr;
}

template <typename Compute>
Store<Compute> store_of(ScalarType dtype) {
  switch (dtype) {
    case ScalarType::boolean:
      return store<Compute, bool>;
    case ScalarType::uint8:
      return store<Compute, std::uint8_t>;
    case ScalarType::int8:
      return store<Compute, std::int8_t>;
    case ScalarType::int16:
      return store<Compute, std::int16_t>;
    case ScalarType::int32:
      return store<Compute, std::int32_t>;
    case ScalarType::int64:
      return store<Compute, std::int64_t>;
    case ScalarType::float32:
      return store<Compute, float>;
    case ScalarType::float64:
      return store<Compute, double>;
    default:
      return nullptr;
  }
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
