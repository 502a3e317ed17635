// Real functions of one number: aten::exp, log, sin, tanh and their kin, in float32; integers are converted.
#include <cmath>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/operations.hpp"

namespace ethosu_sdk::kernels {
namespace {

Status real_function(KernelContext& context, Span<Value* const> values, Unary<float> function) {
  Arguments arguments(context, values, 2);
  const Tensor& input = arguments.tensor(0);
  const ScalarType common = real_type(input.dtype);
  return compute_unary(arguments, input, arguments.output(1), common, common, {nullptr, function, nullptr});
}

float reciprocal(float value) {
  return 1.0f / value;
}
float reciprocal_root(float value) {
  return 1.0f / std::sqrt(value);
}
float logistic(float value) {
  return 1.0f / (1.0f + std::exp(-value));
}

}  // namespace

Status acos_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::acos);
}

Status acosh_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::acosh);
}

Status asin_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::asin);
}

Status asinh_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::asinh);
}

Status atan_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::atan);
}

Status atanh_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::atanh);
}

Status cos_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::cos);
}

Status cosh_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::cosh);
}

Status erf_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::erf);
}

Status exp_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::exp);
}

Status expm1_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::expm1);
}

Status log_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::log);
}

Status log10_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::log10);
}

Status log1p_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::log1p);
}

Status log2_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::log2);
}

Status reciprocal_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, reciprocal);
}

Status rsqrt_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, reciprocal_root);
}

Status sigmoid_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, logistic);
}

Status sin_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::sin);
}

Status sinh_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::sinh);
}

Status sqrt_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::sqrt);
}

Status tan_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::tan);
}

Status tanh_out(KernelContext& context, Span<Value* const> values) {
  return real_function(context, values, std::tanh);
}

}  // namespace ethosu_sdk::kernels
