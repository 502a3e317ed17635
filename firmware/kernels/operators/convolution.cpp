// aten::convolution in float: one or two spatial dimensions, also transposed.
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/arguments.hpp"
#include "kernels/support/dispatch.hpp"
#include "kernels/support/layout.hpp"
#include "kernels/support/spatial.hpp"

namespace ethosu_sdk::kernels {
namespace {

constexpr std::int64_t max_parameter = 0xFFFFFFF;  // keeps all sums and products below in 64 bits

struct Axis : SpatialAxis {
  std::size_t input_stride = 0;
  std::size_t kernel_stride = 0;
  std::size_t output_stride = 0;

  // The input element under kernel element `tap`; negative or past the end: padding.
  std::int64_t position(std::int64_t at, std::int64_t tap) const { return start(at) + tap * dilation; }
  bool holds(std::int64_t element) const { return element >= 0 && element < input; }
};

struct Convolution {
  Axis height;  // a single element for one spatial dimension
  Axis width;
  std::size_t images;
  std::size_t groups;
  std::size_t group_inputs;
  std::size_t group_outputs;
  View input;
  View weight;
  View output;
};

void read_axis_list(Arguments& arguments, std::size_t index, std::size_t axes, std::int64_t minimum,
                    std::int64_t (&items)[2]) {
  const std::size_t count = arguments.integers(index, items, 2);
  if (arguments.ok() && count != 1 && count != axes) {
    arguments.fail(Status::invalid_argument, "argument ", index, " has ", count, " items");
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (items[i] < minimum || items[i] > max_parameter) {
      arguments.fail(Status::invalid_argument, "item ", i, " of argument ", index, " is ", items[i]);
    }
  }
  if (count == 1) {
    items[1] = items[0];
  }
}

// Arguments 3 to 7: stride, padding, dilation, transposed, output padding.
void read_axes(Arguments& arguments, const Tensor& input, const Tensor& weight, bool transposed,
               Axis (&axes)[2]) {
  const std::size_t count = input.rank - 2u;
  std::int64_t extra[2] = {0, 0};
  if (transposed) {
    read_axis_list(arguments, 7, count, 0, extra);
  }
  std::int64_t stride[2] = {1, 1};
  std::int64_t padding[2] = {0, 0};
  std::int64_t dilation[2] = {1, 1};
  read_axis_list(arguments, 3, count, 1, stride);
  read_axis_list(arguments, 4, count, 0, padding);
  read_axis_list(arguments, 5, count, 1, dilation);
  for (std::size_t i = 0; i < count && arguments.ok(); ++i) {
    Axis& axis = axes[2 - count + i];
    axis.input = input.sizes[2 + i];
    axis.kernel = weight.sizes[2 + i];
    axis.stride = stride[i];
    axis.padding = padding[i];
    axis.dilation = dilation[i];
    axis.output = transposed ? axis.transposed_size(extra[i]) : axis.windows();
    if (axis.kernel > max_parameter || axis.output < 1 || axis.output > max_parameter || axis.kernel < 1) {
      arguments.fail(Status::invalid_argument, "a kernel of ", axis.kernel, " on an input of ", axis.input);
    }
  }
}

void set_strides(Convolution& convolution, std::size_t rank) {
  Axis* const axes[2] = {&convolution.height, &convolution.width};
  for (std::size_t dim = 2; dim < rank; ++dim) {
    Axis& axis = *axes[dim - rank + 2];
    axis.input_stride = convolution.input.strides[dim];
    axis.kernel_stride = convolution.weight.strides[dim];
    axis.output_stride = convolution.output.strides[dim];
  }
}

// The weights' channels: [outputs, inputs of a group] or, transposed, [inputs, outputs of a group].
struct Channels {
  std::int64_t groups;
  std::int64_t inputs;
  std::int64_t outputs;
};

Channels read_channels(Arguments& arguments, const Tensor& input, const Tensor& weight, bool transposed) {
  const std::int64_t groups = arguments.integer(8);
  const std::int64_t first = weight.sizes[0];
  const std::int64_t second = weight.sizes[1];
  if (!arguments.ok() || groups < 1 || groups > first || first % groups != 0 ||
      input.sizes[1] != (transposed ? first : groups * second)) {
    arguments.fail(Status::shape_mismatch, input.sizes[1], " input channels, weights of ", first, " by ",
                   second, " channels in ", groups, " groups");
    return {1, 0, 0};
  }
  return transposed ? Channels{groups, first, groups * second} : Channels{groups, groups * second, first};
}

// Checks all shapes and gives `output` the result's.
Convolution fit(Arguments& arguments, const Tensor& input, const Tensor& weight, const Tensor* bias,
                bool transposed, Tensor& output) {
  Convolution convolution{};
  if (!arguments.ok() || (input.rank != 3 && input.rank != 4) || weight.rank != input.rank) {
    arguments.fail(Status::unsupported_argument, "an input of rank ", input.rank, ", weights of rank ",
                   weight.rank);
    return convolution;
  }
  Axis axes[2];
  read_axes(arguments, input, weight, transposed, axes);
  const Channels channels = read_channels(arguments, input, weight, transposed);
  if (bias != nullptr && arguments.ok() && (bias->rank != 1 || bias->sizes[0] != channels.outputs)) {
    arguments.fail(Status::shape_mismatch, "the bias does not fit the output channels");
  }
  if (!arguments.ok() || channels.outputs > max_parameter) {
    arguments.fail(Status::unsupported_argument, channels.outputs, " output channels");
    return convolution;
  }
  std::int32_t sizes[] = {input.sizes[0], static_cast<std::int32_t>(channels.outputs),
                          static_cast<std::int32_t>(axes[0].output),
                          static_cast<std::int32_t>(axes[1].output)};
  if (input.rank == 3) {
    sizes[2] = sizes[3];
  }
  arguments.resize(output, sizes, input.rank);
  convolution = {axes[0],
                 axes[1],
                 static_cast<std::size_t>(input.sizes[0]),
                 static_cast<std::size_t>(channels.groups),
                 static_cast<std::size_t>(channels.inputs / channels.groups),
                 static_cast<std::size_t>(channels.outputs / channels.groups),
                 view_of(input),
                 view_of(weight),
                 view_of(output)};
  set_strides(convolution, input.rank);
  return convolution;
}

// One output element: input channels, then kernel rows, then kernel columns.
template <typename Float>
Float sum_at(const Convolution& convolution, const Float* input, const Float* weight, std::int64_t y,
             std::int64_t x) {
  const Axis& height = convolution.height;
  const Axis& width = convolution.width;
  Float sum = 0;
  for (std::size_t channel = 0; channel < convolution.group_inputs; ++channel) {
    const Float* const plane = input + channel * convolution.input.strides[1];
    const Float* const taps = weight + channel * convolution.weight.strides[1];
    for (std::int64_t i = 0; i < height.kernel; ++i) {
      const std::int64_t row = height.position(y, i);
      if (!height.holds(row)) {
        continue;
      }
      for (std::int64_t j = 0; j < width.kernel; ++j) {
        const std::int64_t column = width.position(x, j);
        if (width.holds(column)) {
          sum += plane[static_cast<std::size_t>(row) * height.input_stride +
                       static_cast<std::size_t>(column) * width.input_stride] *
                 taps[static_cast<std::size_t>(i) * height.kernel_stride +
                      static_cast<std::size_t>(j) * width.kernel_stride];
        }
      }
    }
  }
  return sum;
}

// The transposed twin of sum_at: what every input element adds to one output element, in the order of the
// input's rows, columns and channels.
template <typename Float>
Float transposed_sum_at(const Convolution& convolution, const Float* input, const Float* weight, Float sum,
                        std::int64_t y, std::int64_t x) {
  const Axis& height = convolution.height;
  const Axis& width = convolution.width;
  // The tap that takes input element `element` to output element `at`; negative: none.
  const auto tap_of = [](const Axis& axis, std::int64_t element, std::int64_t at) -> std::int64_t {
    const std::int64_t distance = at + axis.padding - element * axis.stride;
    const bool fits =
        distance >= 0 && distance % axis.dilation == 0 && distance / axis.dilation < axis.kernel;
    return fits ? distance / axis.dilation : -1;
  };
  for (std::int64_t row = 0; row < height.input; ++row) {
    const std::int64_t i = tap_of(height, row, y);
    for (std::int64_t column = 0; i >= 0 && column < width.input; ++column) {
      const std::int64_t j = tap_of(width, column, x);
      if (j < 0) {
        continue;
      }
      const Float* const element = input + static_cast<std::size_t>(row) * height.input_stride +
                                   static_cast<std::size_t>(column) * width.input_stride;
      const Float* const tap = weight + static_cast<std::size_t>(i) * height.kernel_stride +
                               static_cast<std::size_t>(j) * width.kernel_stride;
      for (std::size_t channel = 0; channel < convolution.group_inputs; ++channel) {
        sum += element[channel * convolution.input.strides[1]] * tap[channel * convolution.weight.strides[0]];
      }
    }
  }
  return sum;
}

template <typename Float>
void convolve(const Convolution& convolution, const Tensor& input, const Tensor& weight, const Tensor* bias,
              bool transposed, Tensor& output) {
  const std::size_t outputs = convolution.groups * convolution.group_outputs;
  for (std::size_t image = 0; image < convolution.images; ++image) {
    for (std::size_t channel = 0; channel < outputs; ++channel) {
      const std::size_t group = channel / convolution.group_outputs;
      const Float* const from = input.as<const Float>() + image * convolution.input.strides[0] +
                                group * convolution.group_inputs * convolution.input.strides[1];
      const std::size_t first_tap =
          transposed ? group * convolution.group_inputs * convolution.weight.strides[0] +
                           channel % convolution.group_outputs * convolution.weight.strides[1]
                     : channel * convolution.weight.strides[0];
      const Float* const taps = weight.as<const Float>() + first_tap;
      const Float added = bias == nullptr ? Float{0} : bias->as<const Float>()[channel];
      Float* const to = output.as<Float>() + image * convolution.output.strides[0] +
                        channel * convolution.output.strides[1];
      for (std::int64_t y = 0; y < convolution.height.output; ++y) {
        for (std::int64_t x = 0; x < convolution.width.output; ++x) {
          const Float sum = transposed ? transposed_sum_at(convolution, from, taps, added, y, x)
                                       : sum_at(convolution, from, taps, y, x);
          to[static_cast<std::size_t>(y) * convolution.height.output_stride +
             static_cast<std::size_t>(x) * convolution.width.output_stride] =
              transposed || bias == nullptr ? sum : sum + added;
        }
      }
    }
  }
}

}  // namespace

Status convolution_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 10);
  const Tensor& input = arguments.tensor(0);
  const Tensor& weight = arguments.tensor(1);
  const Tensor* const bias = arguments.optional_tensor(2);
  const bool transposed = arguments.boolean(6);
  Tensor& output = arguments.output(9);
  arguments.expect_dtype(weight, input.dtype, "the weights");
  arguments.expect_dtype(output, input.dtype, "the output");
  if (arguments.ok() && bias != nullptr) {
    arguments.expect_dtype(*bias, input.dtype, "the bias");
  }
  const Convolution convolution = fit(arguments, input, weight, bias, transposed, output);
  if (!arguments.ok()) {
    return arguments.status();
  }
  const bool supported = for_float(input.dtype, [&](auto type) {
    convolve<type_of<decltype(type)>>(convolution, input, weight, bias, transposed, output);
  });
  return supported ? arguments.status() : arguments.unsupported_dtype(input);
}

}  // namespace ethosu_sdk::kernels
