// aten::relu, hardtanh and clamp; gelu, elu, leaky_relu, glu and logit in float32.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/kernels.hpp"
#include "kernels/support/copy.hpp"
#include "kernels/support/elementwise.hpp"
#include "kernels/support/operations.hpp"

namespace ethosu_sdk::kernels {
namespace {

struct Bounds {
  bool has_minimum;
  bool has_maximum;
  Scalar minimum;
  Scalar maximum;
};

// A NaN stays: it compares false with both bounds.
Status clamp_to(Arguments& arguments, const Tensor& input, Tensor& output, const Bounds& bounds,
                ScalarType common) {
  check_result_dtype(arguments, common, output);
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  return with_compute_type(common, [&](auto type) {
    using Compute = type_of<decltype(type)>;
    const auto minimum = scalar_as<Compute>(bounds.minimum);
    const auto maximum = scalar_as<Compute>(bounds.maximum);
    return map_unary<Compute>(arguments, input, output, [&](Compute value) {
      value = bounds.has_minimum && value < minimum ? minimum : value;
      return bounds.has_maximum && value > maximum ? maximum : value;
    });
  });
}

constexpr float half_root = 0.70710678118654752440f;         // sqrt(1/2)
constexpr float two_over_root_pi = 1.12837916709551257390f;  // 2 / sqrt(pi)

float gelu_by_erf(float value) {
  return 0.5f * value * (1.0f + std::erf(value * half_root));
}

float gelu_by_tanh(float value) {
  const float cubic = value + 0.044715f * value * value * value;
  return 0.5f * value * (1.0f + std::tanh(two_over_root_pi * half_root * cubic));
}

// The checks of operators that compute float32 from float32.
Status expect_single(Arguments& arguments, const Tensor& input, const Tensor& output) {
  if (arguments.ok() && input.dtype != ScalarType::float32) {
    return arguments.unsupported_dtype(input);
  }
  return arguments.expect_dtype(output, ScalarType::float32, "the output");
}

template <typename Operation>
Status map_single(Arguments& arguments, const Tensor& input, Tensor& output, Operation&& operation) {
  expect_single(arguments, input, output);
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  return map_unary<float>(arguments, input, output, operation);
}

}  // namespace

Status relu_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const Tensor& input = arguments.tensor(0);
  return clamp_to(arguments, input, arguments.output(1), {true, false, {}, {}}, input.dtype);
}

Status hardtanh_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);
  const Tensor& input = arguments.tensor(0);
  const Bounds bounds = {true, true, arguments.scalar(1), arguments.scalar(2)};
  return clamp_to(arguments, input, arguments.output(3), bounds, input.dtype);
}

Status clamp_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);
  const Tensor& input = arguments.tensor(0);
  Bounds bounds = {!arguments.is_none(1), !arguments.is_none(2), {}, {}};
  ScalarType common = input.dtype;
  if (bounds.has_minimum) {
    bounds.minimum = arguments.scalar(1);
    common = promote_with_scalar(common, bounds.minimum);
  }
  if (bounds.has_maximum) {
    bounds.maximum = arguments.scalar(2);
    common = promote_with_scalar(common, bounds.maximum);
  }
  return clamp_to(arguments, input, arguments.output(3), bounds, common);
}

Status gelu_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  const char* const approximate = arguments.text(1);
  Tensor& output = arguments.output(2);
  const bool by_tanh = std::strcmp(approximate, "tanh") == 0;
  if (arguments.ok() && !by_tanh && std::strcmp(approximate, "none") != 0) {
    arguments.fail(Status::invalid_argument, "approximation '", approximate, "'");
  }
  return map_single(arguments, input, output, by_tanh ? gelu_by_tanh : gelu_by_erf);
}

Status elu_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, alpha, scale, input_scale, out
  const Tensor& input = arguments.tensor(0);
  const auto positive = static_cast<float>(arguments.real(2));
  const auto negative = static_cast<float>(arguments.real(1)) * positive;
  const auto input_scale = static_cast<float>(arguments.real(3));
  return map_single(arguments, input, arguments.output(4), [=](float value) {
    return value <= 0 ? std::expm1(value * input_scale) * negative : value * positive;
  });
}

Status leaky_relu_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  const auto slope = static_cast<float>(arguments.real(1));
  return map_single(arguments, input, arguments.output(2),
                    [slope](float value) { return value >= 0 ? value : value * slope; });
}

Status logit_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  const bool has_margin = !arguments.is_none(1);
  const float margin = has_margin ? static_cast<float>(arguments.real(1)) : 0.0f;
  Tensor& output = arguments.output(2);
  const ScalarType common = real_type(input.dtype);
  if (arguments.ok() && common != ScalarType::float32) {
    arguments.unsupported_dtype(input);
  }
  arguments.expect_dtype(output, ScalarType::float32, "the output");
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  return map_unary<float>(arguments, input, output, [=](float value) {
    if (has_margin) {
      value = value < margin ? margin : value;
      value = value > 1.0f - margin ? 1.0f - margin : value;
    }
    return std::log(value / (1.0f - value));
  });
}

// The first half along a dimension times the logistic of the second.
Status glu_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  Tensor& output = arguments.output(2);
  expect_single(arguments, input, output);
  if (!arguments.ok() || input.rank == 0 || input.sizes[dim] % 2 != 0) {
    return arguments.fail(Status::invalid_argument, "a dimension that cannot be halved");
  }
  std::int32_t sizes[max_rank] = {};
  for (std::size_t i = 0; i < input.rank; ++i) {
    sizes[i] = i == dim ? input.sizes[i] / 2 : input.sizes[i];
  }
  if (arguments.resize(output, sizes, input.rank) != Status::ok) {
    return arguments.status();
  }
  const View from = view_of(input);
  const View to = view_of(output);
  const std::size_t gate = static_cast<std::size_t>(sizes[dim]) * from.strides[dim];
  walk({&to, &from}, [&](const std::size_t(&at)[2]) {
    const auto* const first = input.as<const float>() + at[1];
    output.as<float>()[at[0]] = *first * (1.0f / (1.0f + std::exp(-first[gate])));
  });
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
