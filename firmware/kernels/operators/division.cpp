// aten::div with a rounding mode, floor_divide, remainder and fmod, of two tensors and of a tensor and a
// number. Integers divided by zero are an error, as in ExecuTorch.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/kernels.hpp"
#include "kernels/support/operations.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

template <typename Float>
Float quotient(Float left, Float right) {
  return left / right;
}
template <typename Float>
Float truncated_quotient(Float left, Float right) {
  return std::trunc(left / right);
}
template <typename Float>
Float real_fmod(Float left, Float right) {
  return std::fmod(left, right);
}
template <typename Float>
Float floored_remainder(Float left, Float right) {
  const Float remainder = std::fmod(left, right);
  return remainder != 0 && (remainder < 0) != (right < 0) ? remainder + right : remainder;
}

// ExecuTorch's floor division: from the remainder, so that quotients just below a whole number are not
// rounded up to it; by zero an infinity of the dividend's sign, whatever the dividend.
template <typename Float>
Float floored_quotient(Float left, Float right) {
  if (right == 0) {
    const Float infinity = std::numeric_limits<Float>::infinity();
    return std::signbit(left) ? -infinity : infinity;
  }
  const Float remainder = std::fmod(left, right);
  const Float quotient = (left - remainder) / right;
  return remainder != 0 && std::signbit(right) != std::signbit(remainder) ? quotient - 1 : quotient;
}

constexpr BinaryOperations true_division = {nullptr, quotient<float>, quotient<double>};
constexpr BinaryOperations truncated_division = {wrapping_quotient, truncated_quotient<float>,
                                                 truncated_quotient<double>};
constexpr BinaryOperations floored_division = {wrapping_floor_quotient, floored_quotient<float>,
                                               floored_quotient<double>};

bool holds_zero(const Tensor& divisor) {
  const auto load = load_of<std::int64_t>(divisor.dtype);
  const std::size_t count = load == nullptr ? 0 : divisor.element_count();
  for (std::size_t i = 0; i < count; ++i) {
    if (load(divisor.data, i) == 0) {
      return true;
    }
  }
  return false;
}

Status divide(Arguments& arguments, std::size_t output_index, const BinaryOperations& operations) {
  const Operand left(arguments, 0);
  const Operand right(arguments, 1);
  Tensor& output = arguments.output(output_index);
  const ScalarType promoted = promote(left, right);
  const ScalarType common = operations.integer == nullptr ? real_type(promoted) : promoted;
  if (arguments.ok() && common == ScalarType::boolean) {
    arguments.unsupported_dtype(left.tensor());
  }
  if (arguments.ok() && is_integral(common) && holds_zero(right.tensor())) {
    arguments.fail(Status::invalid_argument, "integers divided by zero");
  }
  return compute_binary(arguments, left.tensor(), right.tensor(), output, common, common, operations);
}

}  // namespace

Status div_mode_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, other, rounding_mode, out
  const char* const mode = arguments.is_none(2) ? nullptr : arguments.text(2);
  if (!arguments.ok() || mode == nullptr) {
    return divide(arguments, 3, true_division);
  }
  if (std::strcmp(mode, "trunc") == 0) {
    return divide(arguments, 3, truncated_division);
  }
  return std::strcmp(mode, "floor") == 0
             ? divide(arguments, 3, floored_division)
             : arguments.fail(Status::invalid_argument, "rounding mode '", mode, "'");
}

Status floor_divide_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  return divide(arguments, 2, floored_division);
}

// Of floats Python's, with the divisor's sign; of integers C's, with the dividend's, as ExecuTorch computes
// them.
Status remainder_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  return divide(arguments, 2, {wrapping_remainder, floored_remainder<float>, floored_remainder<double>});
}

Status fmod_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  return divide(arguments, 2, {wrapping_remainder, real_fmod<float>, real_fmod<double>});
}

}  // namespace ethosu_sdk::kernels
