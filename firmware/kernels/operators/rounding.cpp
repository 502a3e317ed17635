// aten::floor, ceil, round, trunc, abs, neg and sign: same dtype, exact results.
#include <cmath>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/operations.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

std::int64_t itself(std::int64_t value) {
  return value;
}

// The least integer stays as it is.
std::int64_t magnitude(std::int64_t value) {
  return value < 0 ? wrapping_negative(value) : value;
}
std::int64_t sign_of_integer(std::int64_t value) {
  return (value > 0 ? 1 : 0) - (value < 0 ? 1 : 0);
}

template <typename Float>
Float negative_real(Float value) {
  return -value;
}
// The zero keeps its sign, as in ExecuTorch.
template <typename Float>
Float magnitude_of_real(Float value) {
  return value < 0 ? -value : value;
}
template <typename Float>
Float sign_of_real(Float value) {
  if (std::isnan(value)) {
    return value;
  }
  return static_cast<Float>((value > 0 ? 1 : 0) - (value < 0 ? 1 : 0));
}

}  // namespace

// Integers stay as they are. ExecuTorch's kernels take 32-bit ones through float, which rounds large ones.
Status ceil_out(KernelContext& context, Span<Value* const> values) {
  return same_type_unary(context, values, {itself, std::ceil, std::ceil});
}

Status floor_out(KernelContext& context, Span<Value* const> values) {
  return same_type_unary(context, values, {itself, std::floor, std::floor});
}

// Ties to even, the mode that nothing here changes.
Status round_out(KernelContext& context, Span<Value* const> values) {
  return same_type_unary(context, values, {itself, std::nearbyint, std::nearbyint});
}

Status trunc_out(KernelContext& context, Span<Value* const> values) {
  return same_type_unary(context, values, {itself, std::trunc, std::trunc});
}

Status abs_out(KernelContext& context, Span<Value* const> values) {
  return same_type_unary(context, values, {magnitude, magnitude_of_real<float>, magnitude_of_real<double>});
}

Status neg_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const Tensor& input = arguments.tensor(0);
  if (arguments.ok() && input.dtype == ScalarType::boolean) {
    arguments.unsupported_dtype(input);
  }
  return compute_unary(arguments, input, arguments.output(1), input.dtype, input.dtype,
                       {wrapping_negative, negative_real<float>, negative_real<double>});
}

Status sign_out(KernelContext& context, Span<Value* const> values) {
  return same_type_unary(context, values, {sign_of_integer, sign_of_real<float>, sign_of_real<double>});
}

}  // namespace ethosu_sdk::kernels
