// cortex_m::quantized_avg_pool2d and quantized_max_pool2d, and their forms for NHWC tensors.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/pooling_windows.hpp"
#include "kernels/support/requantize.hpp"
#include "kernels/support/walk.hpp"

namespace ethosu_sdk::kernels {
namespace {

View planes_of_nhwc(const Tensor& tensor) {
  constexpr std::size_t order[] = {0, 3, 1, 2};
  return chosen_dims(view_of(tensor), order, 4);
}

// Which dimensions are pooled: the last two, or those before the channels.
struct Form {
  bool is_nhwc;

  View planes(const Tensor& tensor) const { return is_nhwc ? planes_of_nhwc(tensor) : view_of(tensor); }
  PoolGeometry fit(Arguments& arguments, const Tensor& input, const PoolParameters& parameters,
                   Tensor& output) const {
    if (!is_nhwc) {
      return fit_planes(arguments, input, parameters, output);
    }
    if (arguments.ok() && input.rank != 4) {
      arguments.fail(Status::invalid_argument, "the input has rank ", input.rank);
    }
    return fit_pool(arguments, input, parameters, 1, output);
  }
};

// A sum of dequantized elements in float, as the reference of cortex_m::quantized_avg_pool2d adds them.
struct ScaledWindow {
  float zero_point;
  float scale;
  float sum = 0;

  void add(std::int8_t value, std::int64_t /*index*/) {
    sum += (static_cast<float>(value) - zero_point) * scale;
  }
  std::int8_t average(std::int64_t count) const {
    const float quantized = std::nearbyint(sum / static_cast<float>(count) / scale) + zero_point;
    return static_cast<std::int8_t>(std::min(std::max(quantized, -128.0F), 127.0F));
  }
};

struct MaximumWindow {
  std::int8_t maximum = -128;

  void add(std::int8_t value, std::int64_t /*index*/) { maximum = std::max(maximum, value); }
};

// `finish(window, element count)` is the result of a window.
template <typename Window, typename Finish>
Status pool(Arguments& arguments, const Form& form, const Tensor& input, const PoolParameters& parameters,
            Tensor& output, const Window& empty, Finish&& finish) {
  arguments.expect_dtype(input, ScalarType::int8, "the input");
  arguments.expect_dtype(output, ScalarType::int8, "the output");
  const PoolGeometry geometry = form.fit(arguments, input, parameters, output);
  if (!arguments.ok()) {
    return arguments.status();
  }
  const View from = form.planes(input);
  const View to = form.planes(output);
  for_each_plane(from, to, [&](std::size_t plane_from, std::size_t plane_to) {
    auto* const results = output.as<std::int8_t>() + plane_to;
    pool_plane(input.as<const std::int8_t>() + plane_from, geometry, from, to, false, empty,
               [&](const Window& window, std::int64_t count, std::size_t at) {
                 results[at] = finish(window, count);
               });
  });
  return arguments.status();
}

Status pool_averages(KernelContext& context, Span<Value* const> values, const Form& form) {
  Arguments arguments(context, values, 10);
  PoolParameters parameters = read_pool_parameters(arguments);
  parameters.ceil_mode = arguments.boolean(4);
  const std::int32_t zero_point = read_int32(arguments, 5);
  const Requantization scale = read_requantization(arguments, 6);
  if (arguments.ok() && scale.multiplier <= 0) {
    arguments.fail(Status::invalid_argument, "a multiplier of ", scale.multiplier);
  }
  const auto divisor = static_cast<double>(std::int64_t{1} << (31 - scale.shift));
  const auto factor = static_cast<float>(scale.multiplier / divisor);
  const ScaledWindow empty = {static_cast<float>(zero_point), factor};
  return pool(arguments, form, arguments.tensor(0), parameters, arguments.output(9), empty,
              [](const ScaledWindow& window, std::int64_t count) { return window.average(count); });
}

Status pool_maxima(KernelContext& context, Span<Value* const> values, const Form& form) {
  Arguments arguments(context, values, 11);
  const PoolParameters parameters = read_pool_parameters(arguments);
  std::int64_t dilation[2] = {1, 1};
  read_pool_pair(arguments, 4, 1, dilation);
  if (arguments.boolean(5) || dilation[0] != 1 || dilation[1] != 1 ||
      arguments.integer(6) != arguments.integer(7)) {
    arguments.fail(Status::unsupported_argument, "ceil_mode, a dilation, or two zero points");
  }
  const OutputRange range = {0, read_int32(arguments, 8), read_int32(arguments, 9)};
  return pool(arguments, form, arguments.tensor(0), parameters, arguments.output(10), MaximumWindow{},
              [&](const MaximumWindow& window, std::int64_t) { return in_range(window.maximum, range); });
}

}  // namespace

Status cortex_m_quantized_avg_pool2d_out(KernelContext& context, Span<Value* const> values) {
  return pool_averages(context, values, {false});
}

Status cortex_m_quantized_avg_pool2d_nhwc_out(KernelContext& context, Span<Value* const> values) {
  return pool_averages(context, values, {true});
}

Status cortex_m_quantized_max_pool2d_out(KernelContext& context, Span<Value* const> values) {
  return pool_maxima(context, values, {false});
}

Status cortex_m_quantized_max_pool2d_nhwc_out(KernelContext& context, Span<Value* const> values) {
  return pool_maxima(context, values, {true});
}

}  // namespace ethosu_sdk::kernels
