#include "kernels/support/operations.hpp"

namespace ethosu_sdk::kernels {

Operand::Operand(Arguments& arguments, std::size_t index) : tensor_(&own_) {
  if (arguments.is_tensor(index)) {
    tensor_ = &arguments.tensor(index);
    return;
  }
  is_number_ = true;
  number_ = arguments.scalar(index);
  own_.dtype = number_.is_real() ? ScalarType::float64 : ScalarType::int64;
  own_.data = number_.is_real() ? static_cast<void*>(&number_.real) : static_cast<void*>(&number_.integer);
  own_.capacity_bytes = sizeof(std::int64_t);
}

ScalarType promote(const Operand& left, const Operand& right) {
  if (left.is_number()) {
    return promote_with_scalar(right.tensor().dtype, left.number());
  }
  return right.is_number() ? promote_with_scalar(left.tensor().dtype, right.number())
                           : promote(left.tensor().dtype, right.tensor().dtype);
}

ScalarType real_type(ScalarType dtype) {
  return is_integral(dtype) ? ScalarType::float32 : dtype;
}

Status compute_unary(Arguments& arguments, const Tensor& input, Tensor& output, ScalarType common,
                     ScalarType result, const UnaryOperations& operations) {
  if (arguments.ok()) {
    check_result_dtype(arguments, result, output);
  }
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  return with_compute_type(common, [&](auto type) {
    using Compute = type_of<decltype(type)>;
    const Unary<Compute> operation = operations.get<Compute>();
    return operation == nullptr ? arguments.unsupported_dtype(input)
                                : map_unary<Compute>(arguments, input, output, operation);
  });
}

Status compute_binary(Arguments& arguments, const Tensor& left, const Tensor& right, Tensor& output,
                      ScalarType common, ScalarType result, const BinaryOperations& operations) {
  if (arguments.ok()) {
    check_result_dtype(arguments, result, output);
  }
  if (!arguments.ok() || resize_to_broadcast(arguments, left, right, output) != Status::ok) {
    return arguments.status();
  }
  return with_compute_type(common, [&](auto type) {
    using Compute = type_of<decltype(type)>;
    const Binary<Compute> operation = operations.get<Compute>();
    return operation == nullptr ? arguments.unsupported_dtype(left)
                                : map_binary<Compute>(arguments, left, right, output, operation);
  });
}

Status same_type_unary(KernelContext& context, Span<Value* const> values, const UnaryOperations& operations) {
  Arguments arguments(context, values, 2);
  const Tensor& input = arguments.tensor(0);
  return compute_unary(arguments, input, arguments.output(1), input.dtype, input.dtype, operations);
}

Status promoted_binary(KernelContext& context, Span<Value* const> values,
                       const BinaryOperations& operations) {
  Arguments arguments(context, values, 3);
  const Operand left(arguments, 0);
  const Operand right(arguments, 1);
  const ScalarType common = promote(left, right);
  return compute_binary(arguments, left.tensor(), right.tensor(), arguments.output(2), common, common,
                        operations);
}

}  // namespace ethosu_sdk::kernels
