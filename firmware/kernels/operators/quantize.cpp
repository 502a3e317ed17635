// quantized_decomposed::{quantize,dequantize} per tensor, per channel and per token; cortex_m's twins of the
// same arithmetic.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "kernels/kernels.hpp"
#include "kernels/support/arguments.hpp"
#include "kernels/support/copy.hpp"
#include "kernels/support/dispatch.hpp"
#include "kernels/support/elements.hpp"
#include "kernels/support/layout.hpp"
#include "kernels/support/quantize_vectors.hpp"
#include "kernels/support/walk.hpp"

namespace ethosu_sdk::kernels {
namespace {

struct Quantization {
  double scale;
  std::int64_t zero_point;
  std::int64_t minimum;
  std::int64_t maximum;
};

// `count` elements of the input and of the output: from which on, and how far apart.
struct Run {
  std::size_t from;
  std::size_t to;
  std::size_t count;
  std::size_t from_step = 1;
  std::size_t to_step = 1;
};

// A value that vectors cannot convert leaves as many to the scalar loop.
constexpr std::size_t block = 4096;
// Integers in between where a row is of another layout.
constexpr std::size_t piece_bytes = 1024;

template <typename Integer>
struct Quantizer {
  explicit Quantizer(const Quantization& quantization)
      : inverse_scale(1.0f / static_cast<float>(quantization.scale)),
        zero_point(static_cast<std::int32_t>(quantization.zero_point)),
        minimum(static_cast<Integer>(quantization.minimum)),
        maximum(static_cast<Integer>(quantization.maximum)) {}

  Integer operator()(float value) const {
    return quantized<Integer>(value, inverse_scale, zero_point, minimum, maximum);
  }

  void convert(const float* from, Integer* to, std::size_t to_step, std::size_t left) const {
    while (left > 0) {
      const std::size_t count = std::min(left, block);
      std::size_t i = quantize_vectors(from, to, to_step, count, inverse_scale, zero_point, minimum, maximum);
      for (; i < count; ++i) {
        to[i * to_step] = (*this)(from[i]);
      }
      from += count;
      to += count * to_step;
      left -= count;
    }
  }

  float inverse_scale;
  std::int32_t zero_point;
  Integer minimum, maximum;
};

template <typename Integer>
void quantize_run(const Tensor& input, Tensor& output, const Run& run, const Quantization& quantization) {
  const Quantizer<Integer> quantizer(quantization);
  const auto* from = input.as<const float>() + run.from;
  auto* to = output.as<Integer>() + run.to;
  if (run.from_step == 1 && quantizes_in_steps(run.to_step, quantizer.minimum, quantizer.maximum)) {
    quantizer.convert(from, to, run.to_step, run.count);
    return;
  }
  Integer piece[piece_bytes / sizeof(Integer)];
  for (std::size_t left = run.count; left > 0;) {
    const std::size_t count = std::min(left, std::size(piece));
    if (run.from_step == 1) {
      quantizer.convert(from, piece, 1, count);
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        piece[i] = quantizer(from[i * run.from_step]);
      }
    }
    copy_row<sizeof(Integer)>(piece, 1, to, run.to_step, count);
    from += count * run.from_step;
    to += count * run.to_step;
    left -= count;
  }
}

template <typename Integer>
void dequantize_all(const Integer* from, float* to, std::size_t to_step, std::size_t count,
                    const Quantization& quantization) {
  const auto scale = static_cast<float>(quantization.scale);
  const auto zero_point = static_cast<std::int32_t>(quantization.zero_point);
  std::size_t i = to_step == 1 ? dequantize_vectors(from, to, count, scale, zero_point) : 0;
  for (; i < count; ++i) {
    to[i * to_step] = dequantized(from[i], scale, zero_point);
  }
}

template <typename Integer>
void dequantize_run(const Tensor& input, Tensor& output, const Run& run, const Quantization& quantization) {
  const auto* from = input.as<const Integer>() + run.from;
  auto* to = output.as<float>() + run.to;
  if (run.from_step == 1) {
    dequantize_all(from, to, run.to_step, run.count, quantization);
    return;
  }
  Integer piece[piece_bytes / sizeof(Integer)];
  for (std::size_t left = run.count; left > 0;) {
    const std::size_t count = std::min(left, std::size(piece));
    copy_row<sizeof(Integer)>(from, run.from_step, piece, 1, count);
    dequantize_all(piece, to, run.to_step, count, quantization);
    from += count * run.from_step;
    to += count * run.to_step;
    left -= count;
  }
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

using Convert = void (*)(const Tensor&, Tensor&, const Run&, const Quantization&);

// What quantizes to the output's dtype; checks that the range fits it. Fails and returns nullptr.
Convert quantizer(Arguments& arguments, const Tensor& input, const Tensor& output,
                  const Quantization& quantization) {
  if (!arguments.ok()) {
    return nullptr;
  }
  Convert convert = nullptr;
  bool valid_range = true;
  const bool supported = input.dtype == ScalarType::float32 && for_small_integer(output.dtype, [&](auto to) {
                           convert = quantize_run<type_of<decltype(to)>>;
                           valid_range = range_fits<type_of<decltype(to)>>(quantization);
                         });
  if (!supported) {
    unsupported_pair(arguments, input, output);
  } else if (!valid_range) {
    arguments.fail(Status::invalid_argument, "range ", quantization.minimum, " to ", quantization.maximum,
                   " for ", scalar_type_name(output.dtype));
  }
  return arguments.ok() ? convert : nullptr;
}

Convert dequantizer(Arguments& arguments, const Tensor& input, const Tensor& output) {
  if (!arguments.ok()) {
    return nullptr;
  }
  Convert convert = nullptr;
  const bool supported =
      output.dtype == ScalarType::float32 &&
      for_small_integer(input.dtype, [&](auto from) { convert = dequantize_run<type_of<decltype(from)>>; });
  if (!supported) {
    unsupported_pair(arguments, input, output);
  }
  return convert;
}

void check_zero_point(Arguments& arguments, const Quantization& quantization) {
  if (arguments.ok() && !fits<std::int32_t>(quantization.zero_point)) {
    arguments.fail(Status::invalid_argument, "zero point ", quantization.zero_point);
  }
}

// quant_min, quant_max and the dtype of the integers: three parameters from `index` on.
Quantization read_range(Arguments& arguments, std::size_t index, const Tensor& integers) {
  const Quantization quantization = {1.0, 0, arguments.integer(index), arguments.integer(index + 1)};
  const ScalarType dtype = arguments.scalar_type_or(index + 2, integers.dtype);
  arguments.expect_dtype(integers, dtype, "the integer tensor");
  return quantization;
}

// Parameters 1 to 5: scale, zero_point, quant_min, quant_max, dtype of the integers.
Quantization read_quantization(Arguments& arguments, const Tensor& integers) {
  Quantization quantization = read_range(arguments, 3, integers);
  quantization.scale = arguments.real(1);
  quantization.zero_point = arguments.integer(2);
  check_zero_point(arguments, quantization);
  return quantization;
}

// Rows in the order of the floats, which are the larger of the two.
void convert_layout(const Tensor& input, Tensor& output, Convert convert, const Quantization& quantization) {
  const Tensor& floats = input.dtype == ScalarType::float32 ? input : output;
  std::size_t order[max_rank] = {};
  std::copy_n(floats.dim_order, floats.rank, order);
  const View from = chosen_dims(view_of(input), order, input.rank);
  const View to = chosen_dims(view_of(output), order, output.rank);
  const View* const views[] = {&from, &to};
  const Loops<2> loops = loops_over(views);
  walk_rows(loops, views, [&](const std::size_t(&at)[2]) {
    const std::size_t last = loops.depth - 1;
    const std::size_t(&steps)[2] = loops.strides[last];
    convert(input, output, {at[0], at[1], loops.sizes[last], steps[0], steps[1]}, quantization);
  });
}

// Input and output may have different layouts: then the border to an image whose channels are last is one
// pass.
Status convert_all(Arguments& arguments, const Tensor& input, Tensor& output, Convert convert,
                   const Quantization& quantization) {
  if (convert == nullptr || arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  if (same_layout(input, output)) {
    convert(input, output, {0, 0, input.element_count()}, quantization);
  } else {
    convert_layout(input, output, convert, quantization);
  }
  return arguments.status();
}

Status dequantize(Arguments& arguments, Tensor& output) {
  const Tensor& input = arguments.tensor(0);
  const Quantization quantization = read_quantization(arguments, input);
  return convert_all(arguments, input, output, dequantizer(arguments, input, output), quantization);
}

// Scales and zero points in tensors: arguments 1 and 2. Zero points may be none: 0.
class Parameters {
 public:
  Parameters(Arguments& arguments, std::size_t count)
      : scales_(arguments.tensor(1)), zero_points_(arguments.optional_tensor(2)) {
    if (!arguments.ok()) {
      return;
    }
    load_scale_ = is_integral(scales_.dtype) ? nullptr : load_of<double>(scales_.dtype);
    load_zero_point_ = zero_points_ == nullptr ? nullptr : load_of<std::int64_t>(zero_points_->dtype);
    if (load_scale_ == nullptr || (zero_points_ != nullptr && load_zero_point_ == nullptr)) {
      arguments.unsupported_dtype(load_scale_ == nullptr ? scales_ : *zero_points_);
    } else if (scales_.element_count() < count ||
               (zero_points_ != nullptr && zero_points_->element_count() < count)) {
      arguments.fail(Status::shape_mismatch, "fewer than ", count, " scales or zero points");
    }
  }

  Quantization at(Arguments& arguments, Quantization range, std::size_t index) const {
    range.scale = load_scale_(scales_.data, index);
    range.zero_point = zero_points_ == nullptr ? 0 : load_zero_point_(zero_points_->data, index);
    check_zero_point(arguments, range);
    return range;
  }

 private:
  const Tensor& scales_;
  const Tensor* zero_points_;
  Load<double> load_scale_ = nullptr;
  Load<std::int64_t> load_zero_point_ = nullptr;
};

// One scale for each of `lanes.count` runs, again and again.
Status convert_runs(Arguments& arguments, const Tensor& input, Tensor& output, const Lanes& lanes,
                    Convert convert, const Quantization& range) {
  if (convert == nullptr) {
    return arguments.status();
  }
  arguments.expect_same_dim_order(input, output);
  if (arguments.resize_like(output, input) != Status::ok || input.element_count() == 0) {
    return arguments.status();
  }
  const Parameters parameters(arguments, lanes.count);
  for (std::size_t i = 0; i < lanes.outer * lanes.count && arguments.ok(); ++i) {
    const Quantization quantization = parameters.at(arguments, range, i % lanes.count);
    if (arguments.ok()) {
      convert(input, output, {i * lanes.stride, i * lanes.stride, lanes.stride}, quantization);
    }
  }
  return arguments.status();
}

// All elements in one run.
Lanes whole(Arguments& /*arguments*/, const Tensor& tensor) {
  return {1, 1, tensor.element_count()};
}

// A run for each row of the last dimension.
Lanes tokens_of(Arguments& arguments, const Tensor& tensor) {
  if (!arguments.ok() || tensor.rank == 0) {
    arguments.fail(Status::invalid_argument, "a tensor without rows");
    return {};
  }
  arguments.expect_contiguous(tensor, "the input");
  Lanes lanes;
  for (std::size_t i = 0; i + 1 < tensor.rank; ++i) {
    lanes.count *= static_cast<std::size_t>(tensor.sizes[i]);
  }
  lanes.stride = static_cast<std::size_t>(tensor.sizes[tensor.rank - 1]);
  return lanes;
}

// Argument 3: the axis that the scales belong to.
Lanes channels_of(Arguments& arguments, const Tensor& tensor) {
  const std::size_t axis = arguments.dim(3, tensor.rank);
  return arguments.ok() ? lanes_along(tensor, axis) : Lanes{};
}

using LanesOf = Lanes (*)(Arguments&, const Tensor&);

// input, scales, zero_points, …, the range from `range_index` on, dtype, out: `count` parameters.
Status quantize_runs(KernelContext& context, Span<Value* const> values, std::size_t count, LanesOf lanes_of,
                     std::size_t range_index) {
  Arguments arguments(context, values, count);
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(count - 1);
  const Lanes lanes = lanes_of(arguments, input);
  const Quantization range = read_range(arguments, range_index, output);
  return convert_runs(arguments, input, output, lanes, quantizer(arguments, input, output, range), range);
}

// The same, and the output's dtype before the output.
Status dequantize_runs(KernelContext& context, Span<Value* const> values, std::size_t count, LanesOf lanes_of,
                       std::size_t range_index) {
  Arguments arguments(context, values, count);
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(count - 1);
  arguments.expect_dtype(output, arguments.scalar_type_or(count - 2, output.dtype), "the output");
  const Lanes lanes = lanes_of(arguments, input);
  const Quantization range = read_range(arguments, range_index, input);
  return convert_runs(arguments, input, output, lanes, dequantizer(arguments, input, output), range);
}

}  // namespace

Status quantize_per_tensor_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 7);
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(6);
  const Quantization quantization = read_quantization(arguments, output);
  return convert_all(arguments, input, output, quantizer(arguments, input, output, quantization),
                     quantization);
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

Status quantize_per_tensor_tensor_out(KernelContext& context, Span<Value* const> values) {
  return quantize_runs(context, values, 7, whole, 3);
}

Status dequantize_per_tensor_tensor_out(KernelContext& context, Span<Value* const> values) {
  return dequantize_runs(context, values, 8, whole, 3);
}

Status quantize_per_channel_out(KernelContext& context, Span<Value* const> values) {
  return quantize_runs(context, values, 8, channels_of, 4);
}

Status dequantize_per_channel_out(KernelContext& context, Span<Value* const> values) {
  return dequantize_runs(context, values, 9, channels_of, 4);
}

Status quantize_per_token_out(KernelContext& context, Span<Value* const> values) {
  return quantize_runs(context, values, 7, tokens_of, 3);
}

Status dequantize_per_token_out(KernelContext& context, Span<Value* const> values) {
  return dequantize_runs(context, values, 8, tokens_of, 3);
}

}  // namespace ethosu_sdk::kernels
