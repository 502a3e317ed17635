// Operators on bits and on truth: aten::bitwise_and, or, xor, not, left_shift and right_shift;
// aten::logical_and, or, xor and not.
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/operations.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

std::int64_t and_of(std::int64_t left, std::int64_t right) {
  return left & right;
}
std::int64_t or_of(std::int64_t left, std::int64_t right) {
  return left | right;
}
std::int64_t xor_of(std::int64_t left, std::int64_t right) {
  return left ^ right;
}

// What is true: everything but 0; a NaN too.
template <typename Compute>
Compute both(Compute left, Compute right) {
  return left != Compute{0} && right != Compute{0} ? Compute{1} : Compute{0};
}
template <typename Compute>
Compute either(Compute left, Compute right) {
  return left != Compute{0} || right != Compute{0} ? Compute{1} : Compute{0};
}
template <typename Compute>
Compute just_one(Compute left, Compute right) {
  return (left != Compute{0}) != (right != Compute{0}) ? Compute{1} : Compute{0};
}
template <typename Compute>
Compute none(Compute value) {
  return value == Compute{0} ? Compute{1} : Compute{0};
}

Status logical(KernelContext& context, Span<Value* const> values, const BinaryOperations& operations) {
  Arguments arguments(context, values, 3);
  const Tensor& left = arguments.tensor(0);
  const Tensor& right = arguments.tensor(1);
  return compute_binary(arguments, left, right, arguments.output(2), promote(left.dtype, right.dtype),
                        ScalarType::boolean, operations);
}

std::uint64_t width_of(ScalarType dtype) {
  return 8 * element_bytes(dtype);
}

// Shifts of a negative distance, or by the type's width and more, leave 0, or the sign when it is kept.
Status shift(KernelContext& context, Span<Value* const> values, bool left_wards) {
  Arguments arguments(context, values, 3);
  const Operand value(arguments, 0);
  const Operand distance(arguments, 1);
  Tensor& output = arguments.output(2);
  const ScalarType common = promote(value, distance);
  if (!is_integral(common) || common == ScalarType::boolean) {
    arguments.fail(Status::invalid_argument, "a shift of ", scalar_type_name(common));
  }
  if (!arguments.ok() ||
      resize_to_broadcast(arguments, value.tensor(), distance.tensor(), output) != Status::ok) {
    return arguments.status();
  }
  check_result_dtype(arguments, common, output);
  if (!arguments.ok()) {
    return arguments.status();
  }
  const std::uint64_t width = width_of(common);
  const auto operation = [width, left_wards](std::int64_t number, std::int64_t by) -> std::int64_t {
    const auto steps = static_cast<std::uint64_t>(by);
    if (left_wards) {
      return steps < width ? wrapping_shift(number, steps) : 0;
    }
    // GCC and every compiler we build with shift signed integers arithmetically.
    return number >> (steps < width ? steps : width - 1);
  };
  return map_binary<std::int64_t>(arguments, value.tensor(), distance.tensor(), output, operation);
}

}  // namespace

Status bitwise_and_out(KernelContext& context, Span<Value* const> values) {
  return promoted_binary(context, values, {and_of, nullptr, nullptr});
}

Status bitwise_or_out(KernelContext& context, Span<Value* const> values) {
  return promoted_binary(context, values, {or_of, nullptr, nullptr});
}

Status bitwise_xor_out(KernelContext& context, Span<Value* const> values) {
  return promoted_binary(context, values, {xor_of, nullptr, nullptr});
}

Status bitwise_not_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const Tensor& input = arguments.tensor(0);
  const bool is_bool = input.dtype == ScalarType::boolean;
  const Unary<std::int64_t> invert = [](std::int64_t value) { return ~value; };
  return compute_unary(arguments, input, arguments.output(1), input.dtype, input.dtype,
                       {is_bool ? none<std::int64_t> : invert, nullptr, nullptr});
}

Status bitwise_left_shift_out(KernelContext& context, Span<Value* const> values) {
  return shift(context, values, true);
}

Status bitwise_right_shift_out(KernelContext& context, Span<Value* const> values) {
  return shift(context, values, false);
}

Status logical_and_out(KernelContext& context, Span<Value* const> values) {
  return logical(context, values, {both<std::int64_t>, both<float>, both<double>});
}

Status logical_or_out(KernelContext& context, Span<Value* const> values) {
  return logical(context, values, {either<std::int64_t>, either<float>, either<double>});
}

Status logical_xor_out(KernelContext& context, Span<Value* const> values) {
  return logical(context, values, {just_one<std::int64_t>, just_one<float>, just_one<double>});
}

Status logical_not_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const Tensor& input = arguments.tensor(0);
  return compute_unary(arguments, input, arguments.output(1), input.dtype, ScalarType::boolean,
                       {none<std::int64_t>, none<float>, none<double>});
}

}  // namespace ethosu_sdk::kernels
