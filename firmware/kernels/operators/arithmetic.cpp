// aten::add, sub, mul and div, of two tensors and of a tensor and a number; aten::rsub.
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/elementwise.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

struct Add {
  static constexpr bool has_alpha = true;
  template <typename Compute>
  static Compute apply(Compute left, Compute right, Compute alpha) {
    return wrapping_sum(left, wrapping_product(alpha, right));
  }
};
struct Subtract {
  static constexpr bool has_alpha = true;
  template <typename Compute>
  static Compute apply(Compute left, Compute right, Compute alpha) {
    return wrapping_difference(left, wrapping_product(alpha, right));
  }
};
struct SubtractFrom {
  static constexpr bool has_alpha = true;
  template <typename Compute>
  static Compute apply(Compute left, Compute right, Compute alpha) {
    return wrapping_difference(right, wrapping_product(alpha, left));
  }
};
struct Multiply {
  static constexpr bool has_alpha = false;
  template <typename Compute>
  static Compute apply(Compute left, Compute right, Compute /*alpha*/) {
    return wrapping_product(left, right);
  }
};
// ExecuTorch's portable kernel divides; its optimised one for the host multiplies by a lone divisor's
// reciprocal, which can differ in the last bit.
struct Divide {
  static constexpr bool has_alpha = false;
  template <typename Compute>
  static Compute apply(Compute left, Compute right, Compute /*alpha*/) {
    return left / right;
  }
};

// self, other, alpha where the operator has one, out
template <typename Operation>
constexpr std::size_t parameters = Operation::has_alpha ? 4 : 3;

template <typename Operation>
Scalar read_alpha(Arguments& arguments) {
  constexpr Scalar one = {ScalarType::int64, 1, 1.0};
  return Operation::has_alpha ? arguments.scalar(2) : one;
}

Status check_alpha(Arguments& arguments, const Scalar& alpha, ScalarType common) {
  if (alpha.type == ScalarType::boolean && common != ScalarType::boolean) {
    return arguments.fail(Status::invalid_argument, "a bool as alpha for numbers");
  }
  return alpha.is_real() && is_integral(common)
             ? arguments.fail(Status::invalid_argument, "a real alpha for integers")
             : arguments.status();
}

// Division computes integers in float32.
template <typename Operation, typename Function>
Status with_operation_type(ScalarType common, Function&& function) {
  if constexpr (std::is_same_v<Operation, Divide>) {
    return common == ScalarType::float64 ? function(Type<double>()) : function(Type<float>());
  } else {
    return with_compute_type(common, function);
  }
}

template <typename Operation>
ScalarType result_type(ScalarType common) {
  return std::is_same_v<Operation, Divide> && is_integral(common) ? ScalarType::float32 : common;
}

template <typename Operation>
Status tensor_and_tensor(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, parameters<Operation>);
  const Scalar alpha = read_alpha<Operation>(arguments);
  const Tensor& left = arguments.tensor(0);
  const Tensor& right = arguments.tensor(1);
  Tensor& output = arguments.output(parameters<Operation> - 1);
  const ScalarType common = result_type<Operation>(promote(left.dtype, right.dtype));
  check_alpha(arguments, alpha, common);
  check_result_dtype(arguments, common, output);
  if (!arguments.ok() || resize_to_broadcast(arguments, left, right, output) != Status::ok) {
    return arguments.status();
  }
  return with_operation_type<Operation>(common, [&](auto type) {
    using Compute = type_of<decltype(type)>;
    const auto factor = scalar_as<Compute>(alpha);
    return map_binary<Compute>(arguments, left, right, output,
                               [factor](Compute a, Compute b) { return Operation::apply(a, b, factor); });
  });
}

template <typename Operation>
Status tensor_and_scalar(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, parameters<Operation>);
  const Scalar alpha = read_alpha<Operation>(arguments);
  const Tensor& left = arguments.tensor(0);
  const Scalar right = arguments.scalar(1);
  Tensor& output = arguments.output(parameters<Operation> - 1);
  const ScalarType common = result_type<Operation>(promote_with_scalar(left.dtype, right));
  check_alpha(arguments, alpha, common);
  check_result_dtype(arguments, common, output);
  if (arguments.resize_like(output, left) != Status::ok) {
    return arguments.status();
  }
  return with_operation_type<Operation>(common, [&](auto type) {
    using Compute = type_of<decltype(type)>;
    const auto factor = scalar_as<Compute>(alpha);
    const auto number = scalar_as<Compute>(right);
    return map_unary<Compute>(arguments, left, output,
                              [factor, number](Compute a) { return Operation::apply(a, number, factor); });
  });
}

}  // namespace

Status add_out(KernelContext& context, Span<Value* const> values) {
  return tensor_and_tensor<Add>(context, values);
}

Status add_scalar_out(KernelContext& context, Span<Value* const> values) {
  return tensor_and_scalar<Add>(context, values);
}

Status sub_out(KernelContext& context, Span<Value* const> values) {
  return tensor_and_tensor<Subtract>(context, values);
}

Status sub_scalar_out(KernelContext& context, Span<Value* const> values) {
  return tensor_and_scalar<Subtract>(context, values);
}

Status rsub_scalar_out(KernelContext& context, Span<Value* const> values) {
  return tensor_and_scalar<SubtractFrom>(context, values);
}

Status mul_out(KernelContext& context, Span<Value* const> values) {
  return tensor_and_tensor<Multiply>(context, values);
}

Status mul_scalar_out(KernelContext& context, Span<Value* const> values) {
  return tensor_and_scalar<Multiply>(context, values);
}

Status div_out(KernelContext& context, Span<Value* const> values) {
  return tensor_and_tensor<Divide>(context, values);
}

Status div_scalar_out(KernelContext& context, Span<Value* const> values) {
  return tensor_and_scalar<Divide>(context, values);
}

}  // namespace ethosu_sdk::kernels
