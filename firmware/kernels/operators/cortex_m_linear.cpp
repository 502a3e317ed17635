// cortex_m::quantized_linear: int8 with CMSIS-NN's arithmetic.
#include <algorithm>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/int8_vectors.hpp"

namespace ethosu_sdk::kernels {
namespace {

struct Offsets {
  std::int32_t input;
  std::int32_t weight;
};

constexpr std::size_t channels_at_once = 64;

struct Linear {
  const std::int8_t* weights;  // outputs, inputs
  const std::int32_t* addends;
  bool has_sums;  // the addends include the input's offset: kernel_sum
  std::size_t inputs;
  Offsets offsets;
  Requantization scale;
  OutputRange range;
};

// The outputs from `first` on of one row of inputs: Σ (input + offset) × (weight + offset) + addend.
void compute_outputs(const Linear& linear, const std::int8_t* from, std::int32_t input_sum, std::size_t first,
                     std::size_t count, std::int8_t* to) {
  std::int32_t sums[channels_at_once] = {};
  dot_products(sums, from, linear.weights + first * linear.inputs, linear.inputs, linear.inputs, count);
  const std::int32_t share = wrapping_product(linear.offsets.weight, input_sum);
  const std::int32_t both = wrapping_product(static_cast<std::int32_t>(linear.inputs), linear.offsets.weight);
  for (std::size_t k = 0; k < count; ++k) {
    std::int32_t sum = wrapping_sum(sums[k], share);
    if (!linear.has_sums && linear.offsets.input != 0) {
      const std::int32_t weight_sum = sum_of(linear.weights + (first + k) * linear.inputs, linear.inputs);
      sum = wrapping_sum(sum, wrapping_product(linear.offsets.input, wrapping_sum(weight_sum, both)));
    }
    sum = wrapping_sum(sum, linear.addends == nullptr ? 0 : linear.addends[first + k]);
    to[first + k] = in_range(requantize(sum, linear.scale), linear.range);
  }
}

}  // namespace

Status cortex_m_quantized_linear_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 12);
  const Tensor& input = arguments.tensor(0);
  const Tensor& weight = arguments.tensor(1);
  const Tensor* const bias = arguments.optional_tensor(2);
  const Tensor* const kernel_sum = arguments.optional_tensor(3);
  const Offsets offsets = {read_int32(arguments, 4), read_int32(arguments, 5)};
  std::int64_t multiplier = 0;
  std::int64_t shift = 0;
  if (arguments.integers(7, &multiplier, 1) != 1 || arguments.integers(8, &shift, 1) != 1) {
    arguments.fail(Status::invalid_argument, "not one multiplier and shift");
  }
  const Requantization scale = checked_requantization(arguments, multiplier, shift);
  const OutputRange range = read_output_range(arguments, 6, 10, 9);
  Tensor& output = arguments.output(11);
  arguments.expect_dtype(input, ScalarType::int8, "the input");
  arguments.expect_dtype(weight, ScalarType::int8, "the weight");
  arguments.expect_dtype(output, ScalarType::int8, "the output");
  arguments.expect_contiguous(input, "the input");
  arguments.expect_contiguous(weight, "the weight");
  arguments.expect_contiguous(output, "the output");
  if (arguments.ok() &&
      (input.rank == 0 || weight.rank != 2 || weight.sizes[1] != input.sizes[input.rank - 1])) {
    arguments.fail(Status::shape_mismatch, "a weight of rank ", weight.rank, " for an input of ", input.rank);
  }
  if (!arguments.ok()) {
    return arguments.status();
  }
  const auto outputs = static_cast<std::size_t>(weight.sizes[0]);
  const auto inputs = static_cast<std::size_t>(weight.sizes[1]);
  // With sums of the weights, which include it, the bias is not used.
  const Tensor* const addend = kernel_sum != nullptr ? kernel_sum : bias;
  const std::int32_t* const addends = addend == nullptr ? nullptr : read_int32s(arguments, *addend, outputs);
  std::int32_t sizes[max_rank];
  std::copy_n(input.sizes, input.rank, sizes);
  sizes[input.rank - 1] = weight.sizes[0];
  if (arguments.resize(output, sizes, input.rank) != Status::ok || outputs == 0) {
    return arguments.status();
  }
  const Linear linear = {
      weight.as<const std::int8_t>(), addends, kernel_sum != nullptr, inputs, offsets, scale, range};
  const std::size_t rows = output.element_count() / outputs;
  for (std::size_t i = 0; i < rows; ++i) {
    const auto* const from = input.as<const std::int8_t>() + i * inputs;
    const std::int32_t input_sum = offsets.weight == 0 ? 0 : sum_of(from, inputs);
    for (std::size_t first = 0; first < outputs; first += channels_at_once) {
      compute_outputs(linear, from, input_sum, first, std::min(channels_at_once, outputs - first),
                      output.as<std::int8_t>() + i * outputs);
    }
  }
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
