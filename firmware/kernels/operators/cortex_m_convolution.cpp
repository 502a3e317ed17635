// cortex_m::quantized_conv2d and quantized_depthwise_conv2d: int8 with CMSIS-NN's arithmetic. Images
// lie in memory with the channels last.
#include <algorithm>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/int8_vectors.hpp"
#include "kernels/support/layout.hpp"

namespace ethosu_sdk::kernels {
namespace {

constexpr std::int64_t max_parameter = 0xFFFFFFF;  // keeps all sums and products below in 64 bits
constexpr std::size_t row = 1, column = 2;         // of an image: dimension 0 is the batch, 3 the channels

// One spatial dimension.
struct Axis {
  std::int64_t input = 1;
  std::int64_t kernel = 1;
  std::int64_t output = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;

  std::int64_t start(std::int64_t at) const { return at * stride - padding; }
  // The elements of a window from `first` on, up to `last`, that lie on the input.
  std::int64_t first(std::int64_t at) const {
    return start(at) < 0 ? (-start(at) + dilation - 1) / dilation : 0;
  }
  std::int64_t last(std::int64_t at) const {
    const std::int64_t room = input - start(at);
    return room <= 0 ? 0 : std::min(kernel, dilation == 1 ? room : (room - 1) / dilation + 1);
  }
};

struct Layer {
  const std::int8_t* input;
  const std::int8_t* weight;
  const std::int32_t* bias;  // nullptr: none
  const std::int32_t* multipliers;
  const std::int32_t* shifts;
  std::int8_t* output;
  std::int32_t input_offset;
  OutputRange range;
  Axis height;
  Axis width;
  std::size_t images;
  std::size_t inputs;   // channels
  std::size_t outputs;  // channels

  std::int32_t bias_of(std::size_t channel) const { return bias == nullptr ? 0 : bias[channel]; }
  // Where the whole window of an output pixel begins; outside of the input if there is padding.
  const std::int8_t* window_start(std::size_t image, std::int64_t y, std::int64_t x) const {
    const std::int64_t rows = static_cast<std::int64_t>(image) * height.input + height.start(y);
    return input + (rows * width.input + width.start(x)) * static_cast<std::int64_t>(inputs);
  }
};

// The layer's parameters that both convolutions have; the depthwise one has one more before the offsets.
struct Places {
  std::size_t input_offset;
  std::size_t weight_outputs;  // dimension of the weight
};

void read_pair(Arguments& arguments, std::size_t index, std::int64_t minimum, std::int64_t (&pair)[2]) {
  const std::size_t count = arguments.integers(index, pair, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (arguments.ok() && (count != 2 || pair[i] < minimum || pair[i] > max_parameter)) {
      arguments.fail(Status::invalid_argument, "argument ", index, " has ", count, " items, the last is ",
                     pair[i]);
    }
  }
}

// Whether an image lies in memory pixel by pixel. Dimensions of size 1 may have any place.
bool has_channels_last(const Tensor& tensor) {
  const View view = view_of(tensor);
  std::size_t stride = 1;
  for (const std::size_t dim : {1, 3, 2, 0}) {
    if (view.sizes[dim] != 1 && view.strides[dim] != stride) {
      return false;
    }
    stride *= static_cast<std::size_t>(view.sizes[dim]);
  }
  return true;
}

void expect_image(Arguments& arguments, const Tensor& tensor, const char* what) {
  arguments.expect_dtype(tensor, ScalarType::int8, what);
  if (arguments.ok() && (tensor.rank != 4 || !has_channels_last(tensor))) {
    arguments.fail(Status::unsupported_argument, what, " is no image with channels last");
  }
}

void set_axis(Arguments& arguments, Axis& axis, std::int64_t input, std::int64_t kernel, std::int64_t stride,
              std::int64_t padding, std::int64_t dilation) {
  axis = {input, kernel, 0, stride, padding, dilation};
  const std::int64_t room = input + 2 * padding - dilation * (kernel - 1) - 1;
  axis.output = room < 0 ? 0 : room / stride + 1;
  if (arguments.ok() && (axis.output < 1 || axis.output > max_parameter || kernel < 1)) {
    arguments.fail(Status::invalid_argument, "a kernel of ", kernel, " on an input of ", input);
  }
}

void read_axes(Arguments& arguments, const Tensor& input, const Tensor& weight, Layer& layer) {
  std::int64_t stride[2] = {};
  std::int64_t padding[2] = {};
  std::int64_t dilation[2] = {};
  read_pair(arguments, 3, 1, stride);
  read_pair(arguments, 4, 0, padding);
  read_pair(arguments, 5, 1, dilation);
  if (arguments.ok()) {
    set_axis(arguments, layer.height, input.sizes[2], weight.sizes[row], stride[0], padding[0], dilation[0]);
    set_axis(arguments, layer.width, input.sizes[3], weight.sizes[column], stride[1], padding[1],
             dilation[1]);
  }
}

void read_scales(Arguments& arguments, std::size_t index, Layer& layer) {
  layer.multipliers = read_int32s(arguments, arguments.tensor(index), layer.outputs);
  layer.shifts = read_int32s(arguments, arguments.tensor(index + 1), layer.outputs);
  for (std::size_t i = 0; i < layer.outputs && arguments.ok(); ++i) {
    checked_requantization(arguments, layer.multipliers[i], layer.shifts[i]);
  }
}

Layer read_layer(Arguments& arguments, const Places& places, Tensor& output) {
  Layer layer{};
  const Tensor& input = arguments.tensor(0);
  const Tensor& weight = arguments.tensor(1);
  const Tensor* const bias = arguments.optional_tensor(2);
  expect_image(arguments, input, "the input");
  arguments.expect_dtype(weight, ScalarType::int8, "the weight");
  arguments.expect_contiguous(weight, "the weight");
  if (arguments.ok() && weight.rank != 4) {
    arguments.fail(Status::invalid_argument, "a weight of rank ", weight.rank);
  }
  read_axes(arguments, input, weight, layer);
  layer.input_offset = read_int32(arguments, places.input_offset);
  layer.range =
      read_output_range(arguments, places.input_offset + 1, places.input_offset + 4, places.input_offset + 5);
  if (!arguments.ok()) {
    return layer;
  }
  layer.images = static_cast<std::size_t>(input.sizes[0]);
  layer.inputs = static_cast<std::size_t>(input.sizes[1]);
  layer.outputs = static_cast<std::size_t>(weight.sizes[places.weight_outputs]);
  read_scales(arguments, places.input_offset + 2, layer);
  if (bias != nullptr) {
    layer.bias = read_int32s(arguments, *bias, layer.outputs);
  }
  const std::int32_t sizes[] = {input.sizes[0], static_cast<std::int32_t>(layer.outputs),
                                static_cast<std::int32_t>(layer.height.output),
                                static_cast<std::int32_t>(layer.width.output)};
  if (arguments.resize(output, sizes, 4) == Status::ok) {
    expect_image(arguments, output, "the output");
  }
  layer.input = input.as<const std::int8_t>();
  layer.weight = weight.as<const std::int8_t>();
  layer.output = output.as<std::int8_t>();
  return layer;
}

// Calls `function(image, y, x, first element of the output's pixel)`.
template <typename Function>
void for_each_pixel(const Layer& layer, Function&& function) {
  std::int8_t* to = layer.output;
  for (std::size_t image = 0; image < layer.images; ++image) {
    for (std::int64_t y = 0; y < layer.height.output; ++y) {
      for (std::int64_t x = 0; x < layer.width.output; ++x) {
        function(image, y, x, to);
        to += layer.outputs;
      }
    }
  }
}

// Channels whose sums are kept at a time.
constexpr std::size_t channels_at_once = 64;

// Requantizes sums of the channels from `first` on.
void finish(const Layer& layer, const std::int32_t* sums, std::size_t first, std::size_t count,
            std::int8_t* to) {
  requantize_all(sums, layer.multipliers + first, layer.shifts + first, layer.range, to + first, count);
}

// The elements of one output pixel's window that lie on the input: rows and columns of the kernel.
struct Window {
  std::int64_t top, bottom;
  std::int64_t left, right;

  Window(const Layer& layer, std::int64_t y, std::int64_t x)
      : top(layer.height.first(y)),
        bottom(layer.height.last(y)),
        left(layer.width.first(x)),
        right(layer.width.last(x)) {}

  bool is_empty() const { return top >= bottom || left >= right; }
  bool is_whole(const Layer& layer) const {
    return top == 0 && left == 0 && bottom == layer.height.kernel && right == layer.width.kernel;
  }
};

// Some output channels of one group. Weights: outputs, rows, columns, inputs of the group.
struct Channels {
  std::size_t first;
  std::size_t count;
  std::size_t group_inputs;
  std::size_t first_input;
  std::size_t weight_step;     // from one output channel to the next
  const std::int8_t* weights;  // of the first

  std::int32_t weight_sum(std::size_t channel, std::size_t tap, std::size_t taps) const {
    return sum_of(weights + channel * weight_step + tap * group_inputs, taps * group_inputs);
  }
};

// Adds to `sums` the products of one window. The offset's share of a whole window is there already.
void add_window(std::int32_t* sums, const Layer& layer, const Channels& channels, const Window& window,
                const std::int8_t* from) {
  // Pixels next to one another are one row if all their channels are used.
  const bool joined = layer.width.dilation == 1 && channels.group_inputs == layer.inputs;
  const auto taps = joined ? static_cast<std::size_t>(window.right - window.left) : std::size_t{1};
  const bool needs_offset = layer.input_offset != 0 && !window.is_whole(layer);
  for (std::int64_t i = window.top; i < window.bottom && !window.is_empty(); ++i) {
    for (std::int64_t j = window.left; j < window.right; j += static_cast<std::int64_t>(taps)) {
      const auto tap = static_cast<std::size_t>(i * layer.width.kernel + j);
      const std::int64_t pixel = i * layer.height.dilation * layer.width.input + j * layer.width.dilation;
      const std::int8_t* const values = from + pixel * static_cast<std::int64_t>(layer.inputs);
      dot_products(sums, values, channels.weights + tap * channels.group_inputs, channels.weight_step,
                   taps * channels.group_inputs, channels.count);
      for (std::size_t k = 0; k < channels.count && needs_offset; ++k) {
        sums[k] =
            wrapping_sum(sums[k], wrapping_product(layer.input_offset, channels.weight_sum(k, tap, taps)));
      }
    }
  }
}

void convolve_some(const Layer& layer, const Channels& channels) {
  std::int32_t biases[channels_at_once];
  std::int32_t starts[channels_at_once];  // with the offset's share of a whole window
  const auto taps = static_cast<std::size_t>(layer.height.kernel * layer.width.kernel);
  for (std::size_t k = 0; k < channels.count; ++k) {
    biases[k] = layer.bias_of(channels.first + k);
    starts[k] =
        wrapping_sum(biases[k], wrapping_product(layer.input_offset, channels.weight_sum(k, 0, taps)));
  }
  for_each_pixel(layer, [&](std::size_t image, std::int64_t y, std::int64_t x, std::int8_t* to) {
    const Window window(layer, y, x);
    std::int32_t sums[channels_at_once];
    std::copy_n(window.is_whole(layer) ? starts : biases, channels.count, sums);
    add_window(sums, layer, channels, window, layer.window_start(image, y, x) + channels.first_input);
    finish(layer, sums, channels.first, channels.count, to);
  });
}

void convolve(const Layer& layer, std::size_t group_inputs) {
  const std::size_t groups = layer.inputs / group_inputs;
  const std::size_t group_outputs = layer.outputs / groups;
  const auto step = static_cast<std::size_t>(layer.height.kernel * layer.width.kernel) * group_inputs;
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t end = (group + 1) * group_outputs;
    for (std::size_t first = group * group_outputs; first < end; first += channels_at_once) {
      convolve_some(layer, {first, std::min(channels_at_once, end - first), group_inputs,
                            group * group_inputs, step, layer.weight + first * step});
    }
  }
}

// The window of one channel. Weights: rows, columns, outputs.
Taps taps_of(const Layer& layer, const Window& window, const std::int8_t* from) {
  const std::int64_t rows = layer.height.dilation * layer.width.input;
  const std::int64_t pixel = window.top * rows + window.left * layer.width.dilation;
  const std::int64_t tap = window.top * layer.width.kernel + window.left;
  return {from + pixel * static_cast<std::int64_t>(layer.inputs),
          layer.weight + static_cast<std::size_t>(tap) * layer.outputs,
          static_cast<std::size_t>(window.bottom - window.top),
          static_cast<std::size_t>(window.right - window.left),
          static_cast<std::size_t>(rows) * layer.inputs,
          static_cast<std::size_t>(layer.width.dilation) * layer.inputs,
          static_cast<std::size_t>(layer.width.kernel) * layer.outputs,
          layer.outputs};
}

// The output channels from `first` on of one pixel: one for each input channel, or `multiplier` that share
// one.
void convolve_block(const Layer& layer, const Window& window, Taps taps, std::size_t multiplier,
                    std::size_t first, std::size_t count, std::int8_t* to) {
  std::int32_t sums[channels_at_once];
  for (std::size_t k = 0; k < count; ++k) {
    sums[k] = layer.bias_of(first + k);
  }
  taps.values += first / multiplier;
  taps.weights += first;
  if (!window.is_empty()) {
    (multiplier == 1 ? window_products : shared_window_products)(sums, taps, layer.input_offset, count);
  }
  finish(layer, sums, first, count, to);
}

void convolve_channels(const Layer& layer, std::size_t multiplier) {
  const std::size_t together = multiplier == 1 ? layer.outputs : multiplier;
  for_each_pixel(layer, [&](std::size_t image, std::int64_t y, std::int64_t x, std::int8_t* to) {
    const Window window(layer, y, x);
    const Taps taps = taps_of(layer, window, layer.window_start(image, y, x));
    for (std::size_t group = 0; group < layer.outputs; group += together) {
      for (std::size_t k = 0; k < together; k += channels_at_once) {
        convolve_block(layer, window, taps, multiplier, group + k, std::min(channels_at_once, together - k),
                       to);
      }
    }
  });
}

}  // namespace

Status cortex_m_quantized_conv2d_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 14);
  Tensor& output = arguments.output(13);
  const Layer layer = read_layer(arguments, {6, 0}, output);
  if (!arguments.ok()) {
    return arguments.status();
  }
  const auto group_inputs = static_cast<std::size_t>(arguments.tensor(1).sizes[3]);
  if (group_inputs == 0 || layer.inputs % group_inputs != 0 || layer.inputs == 0 ||
      layer.outputs % (layer.inputs / group_inputs) != 0) {
    return arguments.fail(Status::shape_mismatch, group_inputs, " of ", layer.inputs, " channels for ",
                          layer.outputs);
  }
  convolve(layer, group_inputs);
  return arguments.status();
}

Status cortex_m_quantized_depthwise_conv2d_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 15);
  Tensor& output = arguments.output(14);
  const Layer layer = read_layer(arguments, {7, 3}, output);
  if (!arguments.ok()) {
    return arguments.status();
  }
  if (arguments.tensor(1).sizes[0] != 1 || layer.inputs == 0 || layer.outputs % layer.inputs != 0) {
    return arguments.fail(Status::shape_mismatch, layer.inputs, " channels for ", layer.outputs);
  }
  convolve_channels(layer, layer.outputs / layer.inputs);
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
