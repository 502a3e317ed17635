// cortex_m::quantized_conv2d and quantized_depthwise_conv2d, and their forms for NHWC tensors: int8 with
// CMSIS-NN's arithmetic. Images lie in memory with the channels last.
#include <algorithm>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/image_layer.hpp"
#include "kernels/support/int8_vectors.hpp"

namespace ethosu_sdk::kernels {
namespace {

// The part of a window that lies on the input: the kernel's elements from `first` on, up to `last`.
std::int64_t first_inside(const SpatialAxis& axis, std::int64_t at) {
  const std::int64_t start = axis.start(at);
  return start < 0 ? (-start + axis.dilation - 1) / axis.dilation : 0;
}
std::int64_t last_inside(const SpatialAxis& axis, std::int64_t at) {
  const std::int64_t room = axis.input - axis.start(at);
  return room <= 0 ? 0 : std::min(axis.kernel, axis.dilation == 1 ? room : (room - 1) / axis.dilation + 1);
}

// Where the whole window of an output pixel begins; outside of the input if there is padding.
const std::int8_t* window_start(const ImageLayer& layer, std::size_t image, std::int64_t y, std::int64_t x) {
  const std::int64_t rows = static_cast<std::int64_t>(image) * layer.height.input + layer.height.start(y);
  const std::int64_t pixel = rows * layer.width.input + layer.width.start(x);
  return layer.input + pixel * static_cast<std::int64_t>(layer.inputs);
}

// Calls `function(image, y, x, first element of the output's pixel)`.
template <typename Function>
void for_each_pixel(const ImageLayer& layer, Function&& function) {
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

// The elements of one output pixel's window that lie on the input: rows and columns of the kernel.
struct Window {
  std::int64_t top, bottom;
  std::int64_t left, right;

  Window(const ImageLayer& layer, std::int64_t y, std::int64_t x)
      : top(first_inside(layer.height, y)),
        bottom(last_inside(layer.height, y)),
        left(first_inside(layer.width, x)),
        right(last_inside(layer.width, x)) {}

  bool is_empty() const { return top >= bottom || left >= right; }
  bool is_whole(const ImageLayer& layer) const {
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
void add_window(std::int32_t* sums, const ImageLayer& layer, const Channels& channels, const Window& window,
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

void convolve_some(const ImageLayer& layer, const Channels& channels) {
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
    add_window(sums, layer, channels, window, window_start(layer, image, y, x) + channels.first_input);
    finish_channels(layer, sums, channels.first, channels.count, to);
  });
}

void convolve(const ImageLayer& layer, std::size_t group_inputs) {
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
Taps taps_of(const ImageLayer& layer, const Window& window, const std::int8_t* from) {
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
void convolve_block(const ImageLayer& layer, const Window& window, Taps taps, std::size_t multiplier,
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
  finish_channels(layer, sums, first, count, to);
}

void convolve_channels(const ImageLayer& layer, std::size_t multiplier) {
  const std::size_t together = multiplier == 1 ? layer.outputs : multiplier;
  for_each_pixel(layer, [&](std::size_t image, std::int64_t y, std::int64_t x, std::int8_t* to) {
    const Window window(layer, y, x);
    const Taps taps = taps_of(layer, window, window_start(layer, image, y, x));
    for (std::size_t group = 0; group < layer.outputs; group += together) {
      for (std::size_t k = 0; k < together; k += channels_at_once) {
        convolve_block(layer, window, taps, multiplier, group + k, std::min(channels_at_once, together - k),
                       to);
      }
    }
  });
}

Status convolution(KernelContext& context, Span<Value* const> values, const ImageDims& dims) {
  Arguments arguments(context, values, 14);
  Tensor& output = arguments.output(13);
  const ImageLayer layer = read_image_layer(arguments, {5, 6, 0, false}, dims, output);
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

Status depthwise_convolution(KernelContext& context, Span<Value* const> values, const ImageDims& dims) {
  Arguments arguments(context, values, 15);
  Tensor& output = arguments.output(14);
  const ImageLayer layer = read_image_layer(arguments, {5, 7, 3, false}, dims, output);
  if (!arguments.ok()) {
    return arguments.status();
  }
  if (arguments.tensor(1).sizes[0] != 1 || layer.inputs == 0 || layer.outputs % layer.inputs != 0) {
    return arguments.fail(Status::shape_mismatch, layer.inputs, " channels for ", layer.outputs);
  }
  convolve_channels(layer, layer.outputs / layer.inputs);
  return arguments.status();
}

}  // namespace

Status cortex_m_quantized_conv2d_out(KernelContext& context, Span<Value* const> values) {
  return convolution(context, values, channels_last);
}

Status cortex_m_quantized_conv2d_nhwc_out(KernelContext& context, Span<Value* const> values) {
  return convolution(context, values, nhwc);
}

Status cortex_m_quantized_depthwise_conv2d_out(KernelContext& context, Span<Value* const> values) {
  return depthwise_convolution(context, values, channels_last);
}

Status cortex_m_quantized_depthwise_conv2d_nhwc_out(KernelContext& context, Span<Value* const> values) {
  return depthwise_convolution(context, values, nhwc);
}

}  // namespace ethosu_sdk::kernels
