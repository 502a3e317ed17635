// aten::relu, hardtanh and clamp.
#include <cstdint>

#include "kernels/elementwise.hpp"
#include "kernels/kernels.hpp"

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
  return with_compute_type(common, [&](auto compute) {
    using Compute = decltype(compute);
    const auto minimum = scalar_as<Compute>(bounds.minimum);
    const auto maximum = scalar_as<Compute>(bounds.maximum);
    return map_unary<Compute>(arguments, input, output, [&](Compute value) {
      value = bounds.has_minimum && value < minimum ? minimum : value;
      return bounds.has_maximum && value > maximum ? maximum : value;
    });
  });
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

}  // namespace ethosu_sdk::kernels
