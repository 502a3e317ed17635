// cortex_m::softmax of int8. The reference computes in float: so does this, which leaves it the rounding of
// PyTorch's exponentials. CMSIS-NN's arm_softmax_s8 computes in integers instead.
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/kernels.hpp"
#include "kernels/support/int8_vectors.hpp"
#include "kernels/support/layout.hpp"

namespace ethosu_sdk::kernels {
namespace {

constexpr int fraction_bits = 26;                 // of the multiplier's result: 31 without 5 integer bits
constexpr std::int64_t result_zero_point = -128;  // and a scale of 1/256

// exp(-i × scale) for each distance of two int8 numbers. What is no normal number is 0.
void fill_exponentials(double scale, float (&exponentials)[256]) {
  constexpr int steps = 16;
  double small[steps];
  for (int i = 0; i < steps; ++i) {
    small[i] = std::exp(-scale * i);
  }
  for (int i = 0; i < 256; i += steps) {
    const double large = std::exp(-scale * i);
    for (int k = 0; k < steps; ++k) {
      const double product = large * small[k];
      exponentials[i + k] = product < std::numeric_limits<float>::min() ? 0 : static_cast<float>(product);
    }
  }
}

}  // namespace

Status cortex_m_softmax_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 8);  // …, input_zero_point, output_zero_point, …, diff_min, out
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  const Requantization scale = read_requantization(arguments, 4);
  Tensor& output = arguments.output(7);
  arguments.expect_dtype(input, ScalarType::int8, "the input");
  arguments.expect_dtype(output, ScalarType::int8, "the output");
  arguments.expect_same_dim_order(input, output);
  if (arguments.ok() && (arguments.integer(3) != result_zero_point || scale.multiplier <= 0)) {
    arguments.fail(Status::unsupported_argument, "an output zero point of ", arguments.integer(3),
                   " or a multiplier of ", scale.multiplier);
  }
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  float exponentials[256];
  fill_exponentials(std::ldexp(scale.multiplier, scale.shift - 31 - fraction_bits), exponentials);
  const Lanes lanes = lanes_along(input, dim);
  for_each_lane(lanes, [&](std::size_t start) {
    softmax_lane(exponentials, input.as<const std::int8_t>() + start, output.as<std::int8_t>() + start,
                 lanes.count, lanes.stride);
  });
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
