// quantized_decomposed::{quantize,dequantize}_per_tensor, and cortex_m's twins of the same arithmetic.
#include <cmath>
#include <cstdint>

#include "kernels/arguments.hpp"
#include "kernels/convert.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/kernels.hpp"

namespace ethosu_sdk::kernels {
namespace {

struct Quantization {
  double scale;
  std::int64_t zero_point;
  std::int64_t minimum;
  std::int64_t maximum;
};

template <typename Integer>
void quantize_all(const Tensor& input, Tensor& output, const Quantization& quantization) {
  const float inverse_scale = 1.0f / static_cast<float>(quantization.scale);
  const auto zero_point = static_cast<std::int32_t>(quantization.zero_point);
  const auto* const from = input.as<const float>();
  auto* const to = output.as<Integer>();
  const std::size_t count = input.element_count();
  for (std::size_t i = 0; i < count; ++i) {
    // The sum is a float too: the order of operations of ExecuTorch 1.5.1.
    auto quantized =
        truncate<std::int64_t>(static_cast<float>(zero_point) + std::nearbyint(inverse_scale * from[i]));
    quantized = quantized < quantization.minimum ? quantization.minimum : quantized;
    quantized = quantized > quantization.maximum ? quantization.maximum : quantized;
    to[i] = static_cast<Integer>(quantized);
  }
}

template <typename Integer>
void dequantize_all(const Tensor& input, Tensor& output, const Quantization& quantization) {
  const auto scale = static_cast<float>(quantization.scale);
  const auto zero_point = static_cast<std::uint32_t>(quantization.zero_point);
  const auto* const from = input.as<const Integer>();
  auto* const to = output.as<float>();
  const std::size_t count = input.element_count();
  for (std::size_t i = 0; i < count; ++i) {
    const auto centred = static_cast<std::int32_t>(static_cast<std::uint32_t>(from[i]) - zero_point);
    to[i] = static_cast<float>(centred) * scale;
  }
}

// Parameters 1 to 5: scale, zero_point, quant_min, quant_max, dtype of the integers.
Quantization read_quantization(Arguments& arguments, const Tensor& integers) {
  const Quantization quantization = {arguments.real(1), arguments.integer(2), arguments.integer(3),
                                     arguments.integer(4)};
  const ScalarType dtype = arguments.scalar_type_or(5, integers.dtype);
  arguments.expect_dtype(integers, dtype, "the integer tensor");
  if (arguments.ok() && !fits<std::int32_t>(quantization.zero_point)) {
    arguments.fail(Status::invalid_argument, "zero point ", quantization.zero_point);
  }
  return quantization;
}

template <typename Integer>
bool range_fits(const Quantization& quantization) {
  return quantization.minimum <= quantization.maximum && fits<Integer>(quantization.minimum) &&
         fits<Integer>(quantization.maximum);
}

Status unsupported_pair(Arguments& arguments, const Tensor& input, const Tensor& output) {
  return arguments.fail(Status::unsupported_argument, "from ", scalar_type_name(input.dtype), " to ",
                        scalar_type_name(output.dtype));
}

Status dequantize(Arguments& arguments, Tensor& output) {
  const Tensor& input = arguments.tensor(0);
  const Quantization quantization = read_quantization(arguments, input);
  arguments.expect_same_dim_order(input, output);
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  const bool supported =
      output.dtype == ScalarType::float32 && for_small_integer(input.dtype, [&](auto from) {
        dequantize_all<type_of<decltype(from)>>(input, output, quantization);
      });
  return supported ? arguments.status() : unsupported_pair(arguments, input, output);
}

}  // namespace

Status quantize_per_tensor_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 7);
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(6);
  const Quantization quantization = read_quantization(arguments, output);
  arguments.expect_same_dim_order(input, output);
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  bool valid_range = true;
  const bool supported = input.dtype == ScalarType::float32 && for_small_integer(output.dtype, [&](auto to) {
                           using Integer = type_of<decltype(to)>;
                           valid_range = range_fits<Integer>(quantization);
                           if (valid_range) {
                             quantize_all<Integer>(input, output, quantization);
                           }
                         });
  if (!supported) {
    return unsupported_pair(arguments, input, output);
  }
  if (!valid_range) {
    return arguments.fail(Status::invalid_argument, "range ", quantization.minimum, " to ",
                          quantization.maximum, " for ", scalar_type_name(output.dtype));
  }
  return arguments.status();
}

Status dequantize_per_tensor_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 8);
  Tensor& output = arguments.output(7);
  arguments.expect_dtype(output, arguments.scalar_type_or(6, output.dtype), "the output");
  return dequantize(arguments, output);
}

Status cortex_m_dequantize_per_tensor_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 7);
  return dequantize(arguments, arguments.output(6));
}

}  // namespace ethosu_sdk::kernels
