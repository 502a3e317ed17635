// aten::_softmax and _log_softmax.
#include <cmath>
#include <cstddef>

#include "kernels/kernels.hpp"
#include "kernels/support/arguments.hpp"
#include "kernels/support/dispatch.hpp"
#include "kernels/support/layout.hpp"

namespace ethosu_sdk::kernels {
namespace {

template <typename Float>
Float maximum_of(const Float* from, std::size_t count, std::size_t stride) {
  Float maximum = from[0];
  for (std::size_t i = 1; i < count; ++i) {
    const Float value = from[i * stride];
    maximum = value < maximum ? maximum : value;  // in this order a NaN wins over what came before it
  }
  return maximum;
}

template <typename Float>
Float exponential_sum(const Float* from, std::size_t count, std::size_t stride, Float maximum) {
  Float sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += std::exp(from[i * stride] - maximum);
  }
  return sum;
}

// One lane: `count` elements `stride` apart. The exponentials are computed twice rather than kept: the same
// bits, and input and output may share memory.
struct Softmax {
  template <typename Float>
  static void apply(const Float* from, Float* to, std::size_t count, std::size_t stride) {
    const Float maximum = maximum_of(from, count, stride);
    const Float sum = exponential_sum(from, count, stride, maximum);
    for (std::size_t i = 0; i < count; ++i) {
      to[i * stride] = std::exp(from[i * stride] - maximum) / sum;
    }
  }
};

struct LogSoftmax {
  template <typename Float>
  static void apply(const Float* from, Float* to, std::size_t count, std::size_t stride) {
    const Float maximum = maximum_of(from, count, stride);
    const Float logarithm = std::log(exponential_sum(from, count, stride, maximum));
    for (std::size_t i = 0; i < count; ++i) {
      to[i * stride] = from[i * stride] - maximum - logarithm;
    }
  }
};

// self, dim, half_to_float, out
template <typename Function>
Status along_lanes(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  const bool half_to_float = arguments.boolean(2);
  Tensor& output = arguments.output(3);
  arguments.expect_dtype(output, input.dtype, "the output");
  arguments.expect_same_dim_order(input, output);
  if (half_to_float) {
    arguments.fail(Status::unsupported_argument, "half_to_float");
  }
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  const Lanes lanes = lanes_along(input, dim);
  const bool supported = for_float(input.dtype, [&](auto type) {
    using Float = type_of<decltype(type)>;
    for_each_lane(lanes, [&](std::size_t start) {
      Function::apply(input.as<const Float>() + start, output.as<Float>() + start, lanes.count, lanes.stride);
    });
  });
  return supported ? arguments.status() : arguments.unsupported_dtype(input);
}

}  // namespace

Status softmax_out(KernelContext& context, Span<Value* const> values) {
  return along_lanes<Softmax>(context, values);
}

Status log_softmax_out(KernelContext& context, Span<Value* const> values) {
  return along_lanes<LogSoftmax>(context, values);
}

}  // namespace ethosu_sdk::kernels
