// aten::native_layer_norm, native_group_norm and _native_batch_norm_legit_no_training in float32.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/kernels.hpp"
#include "kernels/support/arguments.hpp"
#include "kernels/support/layout.hpp"

namespace ethosu_sdk::kernels {
namespace {

void expect_single(Arguments& arguments, const Tensor& tensor, const char* what) {
  arguments.expect_dtype(tensor, ScalarType::float32, what);
}

// A factor or a summand for every channel or element: `count` numbers, or nullptr.
const float* read_parameter(Arguments& arguments, std::size_t index, std::size_t count) {
  const Tensor* const tensor = arguments.optional_tensor(index);
  if (tensor == nullptr || !arguments.ok()) {
    return nullptr;
  }
  expect_single(arguments, *tensor, "a parameter");
  arguments.expect_contiguous(*tensor, "a parameter");
  if (arguments.ok() && tensor->element_count() != count) {
    arguments.fail(Status::shape_mismatch, "a parameter of ", tensor->element_count(), " elements, not ",
                   count);
  }
  return arguments.ok() ? tensor->as<const float>() : nullptr;
}

struct Moments {
  float mean;
  float inverse_deviation;
};

// The mean first, then the squares of what differs from it.
Moments moments_of(const float* values, std::size_t count, float epsilon) {
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += values[i];
  }
  const float mean = sum / static_cast<float>(count);
  float squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    squares += (values[i] - mean) * (values[i] - mean);
  }
  return {mean, 1.0f / std::sqrt(squares / static_cast<float>(count) + epsilon)};
}

// The outputs of layer and group normalisation: the result, means and inverse deviations.
struct Outputs {
  Tensor& result;
  Tensor& means;
  Tensor& deviations;
};

void check_tensors(Arguments& arguments, const Tensor& input, const Outputs& outputs) {
  expect_single(arguments, input, "the input");
  expect_single(arguments, outputs.result, "the output");
  expect_single(arguments, outputs.means, "the mean");
  expect_single(arguments, outputs.deviations, "the deviation");
  arguments.expect_contiguous(input, "the input");
  arguments.expect_contiguous(outputs.result, "the output");
  arguments.expect_contiguous(outputs.means, "the mean");
  arguments.expect_contiguous(outputs.deviations, "the deviation");
}

// Rows of `count` elements each.
template <typename Normalise>
void for_each_row(const Tensor& input, const Outputs& outputs, std::size_t rows, std::size_t count,
                  float epsilon, Normalise&& normalise) {
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const from = input.as<const float>() + row * count;
    const Moments moments =
        count == 0 ? Moments{0, std::numeric_limits<float>::quiet_NaN()} : moments_of(from, count, epsilon);
    float* const to = outputs.result.as<float>() + row * count;
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = normalise((from[i] - moments.mean) * moments.inverse_deviation, row, i);
    }
    outputs.means.as<float>()[row] = moments.mean;
    outputs.deviations.as<float>()[row] = moments.inverse_deviation;
  }
}

float scaled(float value, const float* factors, const float* summands, std::size_t at) {
  value = factors == nullptr ? value : value * factors[at];
  return summands == nullptr ? value : value + summands[at];
}

}  // namespace

Status layer_norm_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 8);  // input, normalized_shape, weight, bias, eps, three outputs
  const Tensor& input = arguments.tensor(0);
  std::int64_t shape[max_rank];
  const std::size_t rank = arguments.integers(1, shape, max_rank);
  const auto epsilon = static_cast<float>(arguments.real(4));
  const Outputs outputs = {arguments.output(5), arguments.output(6), arguments.output(7)};
  check_tensors(arguments, input, outputs);
  if (!arguments.ok() || rank == 0 || rank > input.rank) {
    return arguments.fail(Status::invalid_argument, rank, " dimensions of ", input.rank);
  }
  std::int32_t row_sizes[max_rank] = {};
  std::size_t count = 1;
  std::size_t rows = 1;
  for (std::size_t i = 0; i < input.rank; ++i) {
    const bool normalised = i + rank >= input.rank;
    if (normalised && shape[i + rank - input.rank] != input.sizes[i]) {
      return arguments.fail(Status::shape_mismatch, "size ", i, " of the input is ", input.sizes[i]);
    }
    (normalised ? count : rows) *= static_cast<std::size_t>(input.sizes[i]);
    row_sizes[i] = normalised ? 1 : input.sizes[i];
  }
  const float* const factors = read_parameter(arguments, 2, count);
  const float* const summands = read_parameter(arguments, 3, count);
  arguments.resize_like(outputs.result, input);
  arguments.resize(outputs.means, row_sizes, input.rank);
  if (arguments.resize(outputs.deviations, row_sizes, input.rank) == Status::ok) {
    for_each_row(input, outputs, rows, count, epsilon, [=](float value, std::size_t, std::size_t i) {
      return scaled(value, factors, summands, i);
    });
  }
  return arguments.status();
}

Status group_norm_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 11);  // input, weight, bias, N, C, HxW, group, eps, three outputs
  const Tensor& input = arguments.tensor(0);
  const std::int64_t images = arguments.integer(3);
  const std::int64_t channels = arguments.integer(4);
  const std::int64_t plane = arguments.integer(5);
  const std::int64_t groups = arguments.integer(6);
  const auto epsilon = static_cast<float>(arguments.real(7));
  const Outputs outputs = {arguments.output(8), arguments.output(9), arguments.output(10)};
  check_tensors(arguments, input, outputs);
  std::uint64_t elements = 1;
  for (std::size_t i = 2; i < input.rank; ++i) {
    elements *= static_cast<std::uint64_t>(input.sizes[i]);
  }
  if (!arguments.ok() || input.rank < 2 || images != input.sizes[0] || channels != input.sizes[1] ||
      plane < 0 || static_cast<std::uint64_t>(plane) != elements || groups < 1 || channels % groups != 0) {
    return arguments.fail(Status::invalid_argument, images, " images of ", channels, " channels in ", groups,
                          " groups of planes of ", plane);
  }
  const auto group_count = static_cast<std::size_t>(groups);
  const std::size_t group_channels = static_cast<std::size_t>(channels) / group_count;
  const auto pixels = static_cast<std::size_t>(plane);
  const float* const factors = read_parameter(arguments, 1, static_cast<std::size_t>(channels));
  const float* const summands = read_parameter(arguments, 2, static_cast<std::size_t>(channels));
  arguments.resize_like(outputs.result, input);
  if (groups > 0x7FFFFFFF) {
    return arguments.fail(Status::invalid_argument, groups, " groups");
  }
  const std::int32_t row_sizes[] = {input.sizes[0], static_cast<std::int32_t>(groups)};
  arguments.resize(outputs.means, row_sizes, 2);
  if (arguments.resize(outputs.deviations, row_sizes, 2) != Status::ok) {
    return arguments.status();
  }
  for_each_row(input, outputs, static_cast<std::size_t>(images) * group_count, group_channels * pixels,
               epsilon, [=](float value, std::size_t row, std::size_t i) {
                 return scaled(value, factors, summands, row % group_count * group_channels + i / pixels);
               });
  return arguments.status();
}

Status batch_norm_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 10);  // input, weight, bias, mean, var, momentum, eps, three outputs
  const Tensor& input = arguments.tensor(0);
  static_cast<void>(arguments.real(5));  // what only training uses
  const double epsilon = arguments.real(6);
  const Outputs outputs = {arguments.output(7), arguments.output(8), arguments.output(9)};
  expect_single(arguments, input, "the input");
  expect_single(arguments, outputs.result, "the output");
  arguments.expect_same_dim_order(input, outputs.result);
  if (!arguments.ok() || input.rank < 2) {
    return arguments.fail(Status::invalid_argument, "an input of rank ", input.rank);
  }
  const auto channels = static_cast<std::size_t>(input.sizes[1]);
  const float* const factors = read_parameter(arguments, 1, channels);
  const float* const summands = read_parameter(arguments, 2, channels);
  const float* const means = read_parameter(arguments, 3, channels);
  const float* const variances = read_parameter(arguments, 4, channels);
  if (arguments.ok() && channels != 0 && (means == nullptr || variances == nullptr)) {
    arguments.fail(Status::invalid_argument, "no running mean or variance");
  }
  const std::int32_t none = 0;
  arguments.resize_like(outputs.result, input);
  arguments.resize(outputs.means, &none, 1);  // what only training fills
  if (arguments.resize(outputs.deviations, &none, 1) != Status::ok || input.element_count() == 0) {
    return arguments.status();
  }
  const Lanes lanes = lanes_along(input, 1);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const auto deviation =
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(variances[channel]) + epsilon));
    const float factor = factors == nullptr ? 1.0f : factors[channel];
    const float summand = summands == nullptr ? 0.0f : summands[channel];
    for_each_lane(lanes, [&](std::size_t start) {
      const std::size_t at = start + channel * lanes.stride;
      outputs.result.as<float>()[at] =
          (input.as<const float>()[at] - means[channel]) * deviation * factor + summand;
    });
  }
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
