// Arguments of kernels, as a program holds them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/support/kernel_api.hpp"
#include "tests/support/check.hpp"

namespace ethosu_sdk {

inline Value integer(std::int64_t number) {
  Value value;
  value.kind = ValueKind::integer;
  value.integer = number;
  return value;
}

inline Value boolean(bool flag) {
  Value value;
  value.kind = ValueKind::boolean;
  value.boolean = flag;
  return value;
}

inline Value real(double number) {
  Value value;
  value.kind = ValueKind::real;
  value.real = number;
  return value;
}

// A tensor over its caller's memory, its dimensions in order.
struct TensorValue {
  TensorValue(std::vector<std::int32_t> shape, ScalarType dtype, void* data) : sizes(std::move(shape)) {
    static constexpr std::uint8_t order[] = {0, 1, 2, 3};
    tensor.sizes = sizes.data();
    tensor.rank = static_cast<std::uint8_t>(sizes.size());
    tensor.dim_order = order;
    tensor.dtype = dtype;
    tensor.data = data;
    tensor.capacity_bytes = tensor.byte_count();
    value.kind = ValueKind::tensor;
    value.tensor = &tensor;
  }
  TensorValue(const TensorValue&) = delete;
  TensorValue& operator=(const TensorValue&) = delete;

  std::vector<std::int32_t> sizes;
  Tensor tensor;
  Value value;
};

// Calls a kernel, which says why exactly when it fails.
inline Status call(KernelFn kernel, std::vector<Value*> arguments) {
  ErrorText text;
  KernelContext context(text);
  const Status status = kernel(context, {arguments.data(), arguments.size()});
  CHECK((status == Status::ok) == text.empty());
  return status;
}

}  // namespace ethosu_sdk
