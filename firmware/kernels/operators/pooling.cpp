// aten::avg_pool2d and aten::max_pool2d_with_indices; cortex_m's quantized_avg_pool2d and
// quantized_max_pool2d.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/kernels.hpp"
#include "kernels/support/arguments.hpp"
#include "kernels/support/dispatch.hpp"
#include "kernels/support/requantize.hpp"
#include "kernels/support/walk.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

constexpr std::int64_t max_parameter = 0x7FFFFFFF;  // keeps all sums and products below in 64 bits

// One spatial dimension of the window and of the tensors.
struct Axis {
  std::int64_t input;
  std::int64_t output;
  std::int64_t kernel;
  std::int64_t stride;
  std::int64_t padding;
  std::int64_t dilation;

  // What the window covers, gaps included.
  std::int64_t extent() const { return dilation * (kernel - 1) + 1; }
  std::int64_t start(std::int64_t position) const { return position * stride - padding; }
};

struct Geometry {
  Axis height;
  Axis width;
};

// A list of two integers, of one for both, or of none for the fallback.
void read_pair(Arguments& arguments, std::size_t index, std::int64_t minimum, std::int64_t (&pair)[2]) {
  std::int64_t items[2];
  const std::size_t count = arguments.integers(index, items, 2);
  for (std::size_t i = 0; i < 2 && count != 0; ++i) {
    pair[i] = items[count == 1 ? 0 : i];
    if (pair[i] < minimum || pair[i] > max_parameter) {
      arguments.fail(Status::invalid_argument, "item ", i, " of argument ", index, " is ", pair[i]);
    }
  }
}

// Windows start inside the input or its leading padding, also where ceil_mode rounds up.
std::int64_t output_size(const Axis& axis, bool ceil_mode) {
  const std::int64_t room = axis.input + 2 * axis.padding - axis.extent();
  if (room < 0 && !(ceil_mode && room + axis.stride > 0)) {
    return 0;
  }
  std::int64_t count = (room + (ceil_mode ? axis.stride - 1 : 0)) / axis.stride + 1;
  if (ceil_mode && (count - 1) * axis.stride >= axis.input + axis.padding) {
    --count;
  }
  return count;
}

struct Parameters {
  std::int64_t kernel[2] = {1, 1};
  std::int64_t stride[2] = {1, 1};
  std::int64_t padding[2] = {0, 0};
  std::int64_t dilation[2] = {1, 1};
  bool ceil_mode = false;
};

// Parameters 1 to 3 of both operators: kernel_size, stride (empty: as the kernel), padding.
Parameters read_parameters(Arguments& arguments) {
  Parameters parameters;
  read_pair(arguments, 1, 1, parameters.kernel);
  for (std::size_t i = 0; i < 2; ++i) {
    parameters.stride[i] = parameters.kernel[i];
  }
  read_pair(arguments, 2, 1, parameters.stride);
  read_pair(arguments, 3, 0, parameters.padding);
  for (std::size_t i = 0; i < 2; ++i) {
    if (arguments.ok() && parameters.padding[i] > parameters.kernel[i] / 2) {
      arguments.fail(Status::invalid_argument, "padding ", parameters.padding[i], " for a kernel of ",
                     parameters.kernel[i]);
    }
  }
  return parameters;
}

// Checks the input's shape and gives `output` the result's; the last two dimensions are pooled.
Geometry fit(Arguments& arguments, const Tensor& input, const Parameters& parameters, Tensor& output) {
  Geometry geometry{};
  Axis* const axes[2] = {&geometry.height, &geometry.width};
  if (!arguments.ok()) {
    return geometry;
  }
  if (input.rank != 3 && input.rank != 4) {
    arguments.fail(Status::invalid_argument, "the input has rank ", input.rank);
    return geometry;
  }
  std::int32_t sizes[4] = {};
  for (std::size_t i = 0; i < input.rank; ++i) {
    sizes[i] = input.sizes[i];
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t dim = input.rank - 2u + i;
    Axis axis = {sizes[dim],
                 0,
                 parameters.kernel[i],
                 parameters.stride[i],
                 parameters.padding[i],
                 parameters.dilation[i]};
    axis.output = output_size(axis, parameters.ceil_mode);
    if (axis.input == 0 || axis.output <= 0 || axis.output > max_parameter) {
      arguments.fail(Status::invalid_argument, "a window of ", axis.extent(), " on an input of ", axis.input);
      return geometry;
    }
    sizes[dim] = static_cast<std::int32_t>(axis.output);
    *axes[i] = axis;
  }
  arguments.resize(output, sizes, input.rank);
  return geometry;
}

// The part of a window that lies on the input: `count` elements from `first`, `step` apart.
struct Range {
  std::int64_t first;
  std::int64_t count;
};

Range inside(const Axis& axis, std::int64_t position) {
  const std::int64_t start = axis.start(position);
  const std::int64_t skipped = start < 0 ? (-start + axis.dilation - 1) / axis.dilation : 0;
  const std::int64_t first = start + skipped * axis.dilation;
  if (first >= axis.input || skipped >= axis.kernel) {
    return {0, 0};
  }
  const std::int64_t room = axis.input - first;
  const std::int64_t reach = axis.dilation == 1 ? room : (room - 1) / axis.dilation + 1;  // division is slow
  const std::int64_t left = axis.kernel - skipped;
  return {first, reach < left ? reach : left};
}

// How many elements a window has when padding counts: it is cut at the end of the padding.
std::int64_t padded_count(const Axis& axis, std::int64_t position) {
  const std::int64_t start = axis.start(position);
  const std::int64_t end = start + axis.kernel;
  const std::int64_t limit = axis.input + axis.padding;
  return (end < limit ? end : limit) - start;
}

// One plane's windows in memory order. `Window::add(value, index in the plane)` gets each window's elements
// row by row, from the state `empty` on, then `finish(window, element count, offset in the output plane)` is
// called.
template <typename T, typename Window, typename Finish>
void pool_plane(const T* plane, const Geometry& geometry, const View& from, const View& to,
                bool count_padding, const Window& empty, Finish&& finish) {
  const std::size_t column_step =
      static_cast<std::size_t>(geometry.width.dilation) * from.strides[from.rank - 1];
  for (std::int64_t y = 0; y < geometry.height.output; ++y) {
    const Range rows = inside(geometry.height, y);
    for (std::int64_t x = 0; x < geometry.width.output; ++x) {
      const Range columns = inside(geometry.width, x);
      Window window = empty;
      for (std::int64_t i = 0; i < rows.count; ++i) {
        const std::int64_t row = rows.first + i * geometry.height.dilation;
        std::size_t at =
            from.in_plane(static_cast<std::size_t>(row), static_cast<std::size_t>(columns.first));
        std::int64_t index = row * geometry.width.input + columns.first;
        for (auto j = static_cast<std::size_t>(columns.count); j > 0; --j) {
          window.add(plane[at], index);
          at += column_step;
          index += geometry.width.dilation;
        }
      }
      const std::int64_t count = count_padding
                                     ? padded_count(geometry.height, y) * padded_count(geometry.width, x)
                                     : rows.count * columns.count;
      finish(window, count, to.in_plane(static_cast<std::size_t>(y), static_cast<std::size_t>(x)));
    }
  }
}

template <typename T>
struct SumWindow {
  void add(T value, std::int64_t /*index*/) {
    // The first element starts the sum: 0 + -0.0 would be +0.0.
    sum = empty ? value : static_cast<T>(sum + value);
    empty = false;
  }
  T sum = 0;
  bool empty = true;
};

template <>
void SumWindow<std::int64_t>::add(std::int64_t value, std::int64_t /*index*/) {
  sum = wrapping_sum(sum, value);
}

template <typename T>
struct MaximumWindow {
  void add(T value, std::int64_t position) {
    if (empty || value > maximum) {
      maximum = value;
      index = position;
    }
    empty = false;
  }
  T maximum = 0;
  std::int64_t index = 0;
  bool empty = true;
};

template <typename T>
T quotient(T sum, std::int64_t divisor) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return wrapping_quotient(sum, divisor);
  } else {
    return sum / static_cast<T>(divisor);
  }
}

template <typename T>
void average(const Tensor& input, Tensor& output, const Geometry& geometry, bool count_padding,
             std::int64_t divisor_override) {
  const View from = view_of(input);
  const View to = view_of(output);
  for_each_plane(from, to, [&](std::size_t plane_from, std::size_t plane_to) {
    const auto finish = [&](const SumWindow<T>& window, std::int64_t count, std::size_t offset) {
      const std::int64_t divisor = divisor_override != 0 ? divisor_override : count;
      output.as<T>()[plane_to + offset] = quotient(window.sum, divisor);
    };
    pool_plane<T, SumWindow<T>>(input.as<const T>() + plane_from, geometry, from, to, count_padding, {},
                                finish);
  });
}

template <typename T>
void maximum(const Tensor& input, Tensor& output, Tensor& indices, const Geometry& geometry) {
  const View from = view_of(input);
  const View to = view_of(output);
  for_each_plane(from, to, [&](std::size_t plane_from, std::size_t plane_to) {
    pool_plane<T, MaximumWindow<T>>(input.as<const T>() + plane_from, geometry, from, to, false, {},
                                    [&](const MaximumWindow<T>& window, std::int64_t, std::size_t offset) {
                                      output.as<T>()[plane_to + offset] = window.maximum;
                                      indices.as<std::int64_t>()[plane_to + offset] = window.index;
                                    });
  });
}

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

// Calls `function(plane of the input, plane of the output)`, which are int8.
template <typename Function>
Status pool_int8(Arguments& arguments, const Tensor& input, const Tensor& output, Function&& function) {
  if (arguments.ok()) {
    for_each_plane(view_of(input), view_of(output), [&](std::size_t from, std::size_t to) {
      function(input.as<const std::int8_t>() + from, output.as<std::int8_t>() + to);
    });
  }
  return arguments.status();
}

}  // namespace

Status cortex_m_quantized_avg_pool2d_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 10);
  const Tensor& input = arguments.tensor(0);
  Parameters parameters = read_parameters(arguments);
  parameters.ceil_mode = arguments.boolean(4);
  const std::int32_t zero_point = read_int32(arguments, 5);
  const Requantization scale = read_requantization(arguments, 6);
  Tensor& output = arguments.output(9);
  arguments.expect_dtype(input, ScalarType::int8, "the input");
  arguments.expect_dtype(output, ScalarType::int8, "the output");
  if (arguments.ok() && scale.multiplier <= 0) {
    arguments.fail(Status::invalid_argument, "a multiplier of ", scale.multiplier);
  }
  const Geometry geometry = fit(arguments, input, parameters, output);
  const auto divisor = static_cast<double>(std::int64_t{1} << (31 - scale.shift));
  const auto factor = static_cast<float>(scale.multiplier / divisor);
  const ScaledWindow empty = {static_cast<float>(zero_point), factor};
  return pool_int8(arguments, input, output, [&](const std::int8_t* from, std::int8_t* to) {
    const auto finish = [&](const ScaledWindow& window, std::int64_t count, std::size_t at) {
      to[at] = window.average(count);
    };
    pool_plane(from, geometry, view_of(input), view_of(output), false, empty, finish);
  });
}

Status cortex_m_quantized_max_pool2d_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 11);
  const Tensor& input = arguments.tensor(0);
  const Parameters parameters = read_parameters(arguments);
  std::int64_t dilation[2] = {1, 1};
  read_pair(arguments, 4, 1, dilation);
  if (arguments.boolean(5) || dilation[0] != 1 || dilation[1] != 1 ||
      arguments.integer(6) != arguments.integer(7)) {
    arguments.fail(Status::unsupported_argument, "ceil_mode, a dilation, or two zero points");
  }
  const OutputRange range = {0, read_int32(arguments, 8), read_int32(arguments, 9)};
  Tensor& output = arguments.output(10);
  arguments.expect_dtype(input, ScalarType::int8, "the input");
  arguments.expect_dtype(output, ScalarType::int8, "the output");
  const Geometry geometry = fit(arguments, input, parameters, output);
  return pool_int8(arguments, input, output, [&](const std::int8_t* from, std::int8_t* to) {
    const auto finish = [&](const MaximumWindow<std::int8_t>& window, std::int64_t, std::size_t at) {
      to[at] = in_range(window.maximum, range);
    };
    pool_plane<std::int8_t, MaximumWindow<std::int8_t>>(from, geometry, view_of(input), view_of(output),
                                                        false, {}, finish);
  });
}

Status avg_pool2d_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 8);
  const Tensor& input = arguments.tensor(0);
  Parameters parameters = read_parameters(arguments);
  parameters.ceil_mode = arguments.boolean(4);
  const bool count_padding = arguments.boolean(5);
  const bool has_divisor = !arguments.is_none(6);
  const std::int64_t divisor = arguments.integer_or(6, 0);
  Tensor& output = arguments.output(7);
  if (has_divisor && divisor == 0) {
    arguments.fail(Status::invalid_argument, "divisor_override is 0");
  }
  arguments.expect_dtype(output, input.dtype, "the output");
  arguments.expect_same_dim_order(input, output);
  const Geometry geometry = fit(arguments, input, parameters, output);
  if (!arguments.ok()) {
    return arguments.status();
  }
  const bool supported = for_compute_type(input.dtype, [&](auto type) {
    average<type_of<decltype(type)>>(input, output, geometry, count_padding, divisor);
  });
  return supported ? arguments.status() : arguments.unsupported_dtype(input);
}

Status max_pool2d_with_indices_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 8);
  const Tensor& input = arguments.tensor(0);
  Parameters parameters = read_parameters(arguments);
  read_pair(arguments, 4, 1, parameters.dilation);
  parameters.ceil_mode = arguments.boolean(5);
  Tensor& output = arguments.output(6);
  Tensor& indices = arguments.output(7);
  arguments.expect_dtype(output, input.dtype, "the output");
  arguments.expect_dtype(indices, ScalarType::int64, "the indices");
  arguments.expect_same_dim_order(input, output);
  arguments.expect_same_dim_order(input, indices);
  const Geometry geometry = fit(arguments, input, parameters, output);
  if (arguments.resize_like(indices, output) != Status::ok) {
    return arguments.status();
  }
  const bool supported = for_real(
      input.dtype, [&](auto type) { maximum<type_of<decltype(type)>>(input, output, indices, geometry); });
  return supported ? arguments.status() : arguments.unsupported_dtype(input);
}

}  // namespace ethosu_sdk::kernels
