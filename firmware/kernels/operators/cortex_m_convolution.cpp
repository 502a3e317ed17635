// cortex_m::quantized_conv2d and quantized_depthwise_conv2d, and their forms for NHWC tensors: int8 with
// CMSIS-NN's arithmetic. Images lie in memory with the channels last.
#include <algorithm>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/image_layer.hpp"
#include "kernels/support/int8_vectors.hpp"

namespace ethosu_sdk::kernels {
namespace {

// The kernel's elements of one dimension that lie on the input: from `first` up to `last`.
struct Inside {
  std::int64_t first;
  std::int64_t last;
  bool is_whole;

  // Of the window that begins at `start`.
  Inside(const SpatialAxis& axis, std::int64_t start) : first(0), last(axis.kernel), is_whole(true) {
    const std::int64_t room = axis.input - start;
    if (start < 0) {
      first = (-start + axis.dilation - 1) / axis.dilation;
      is_whole = false;
    }
    if (room < axis.extent()) {
      last = room <= 0 ? 0 : (room - 1) / axis.dilation + 1;
      is_whole = false;
    }
  }
  std::size_t count() const { return first < last ? static_cast<std::size_t>(last - first) : 0; }
};

// The elements of one output pixel's window that lie on the input: rows and columns of the kernel.
struct Window {
  Inside rows;
  Inside columns;
  const std::int8_t* from;  // where the whole window begins; outside of the input if there is padding

  bool is_empty() const { return rows.count() == 0 || columns.count() == 0; }
  bool is_whole() const { return rows.is_whole && columns.is_whole; }
};

// Calls `function(window, first element of the output's pixel)`. Of the input's channels, a window begins
// with `channel`.
template <typename Function>
void for_each_pixel(const ImageLayer& layer, std::size_t channel, Function&& function) {
  const SpatialAxis height = layer.height;
  const SpatialAxis width = layer.width;
  const auto inputs = static_cast<std::int64_t>(layer.inputs);
  const std::size_t outputs = layer.outputs;
  const std::int8_t* const input = layer.input + channel;
  std::int8_t* to = layer.output;
  for (std::size_t image = 0; image < layer.images; ++image) {
    for (std::int64_t y = 0; y < height.output; ++y) {
      const Inside rows(height, height.start(y));
      const std::int64_t row = static_cast<std::int64_t>(image) * height.input + height.start(y);
      const std::int8_t* const first = input + row * width.input * inputs;
      for (std::int64_t x = 0; x < width.output; ++x) {
        const std::int64_t start = width.start(x);
        function(Window{rows, Inside(width, start), first + start * inputs}, to);
        to += outputs;
      }
    }
  }
}

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
void add_window(std::int32_t* sums, const ImageLayer& layer, const Channels& channels, const Window& window) {
  // Pixels next to one another are one row if all their channels are used.
  const bool joined = layer.width.dilation == 1 && channels.group_inputs == layer.inputs;
  const auto taps = joined ? window.columns.count() : std::size_t{1};
  const bool needs_offset = layer.input_offset != 0 && !window.is_whole();
  for (std::int64_t i = window.rows.first; i < window.rows.last && !window.is_empty(); ++i) {
    for (std::int64_t j = window.columns.first; j < window.columns.last;
         j += static_cast<std::int64_t>(taps)) {
      const auto tap = static_cast<std::size_t>(i * layer.width.kernel + j);
      const std::int64_t pixel = i * layer.height.dilation * layer.width.input + j * layer.width.dilation;
      const std::int8_t* const values = window.from + pixel * static_cast<std::int64_t>(layer.inputs);
      dot_products(sums, sums, values, channels.weights + tap * channels.group_inputs, channels.weight_step,
                   taps * channels.group_inputs, channels.count);
      for (std::size_t k = 0; k < channels.count && needs_offset; ++k) {
        sums[k] =
            wrapping_sum(sums[k], wrapping_product(layer.input_offset, channels.weight_sum(k, tap, taps)));
      }
    }
  }
}

// Windows of up to so many bytes are copied: then all elements of one are next to one another.
constexpr std::size_t largest_copy = 1024;

// Copies windows, in which padding becomes the value that the offset makes 0.
class WindowCopy {
 public:
  WindowCopy(const ImageLayer& layer, const Channels& channels)
      : inputs_(channels.group_inputs),
        size_(channels.weight_step),
        kernel_width_(static_cast<std::size_t>(layer.width.kernel)),
        row_step_(static_cast<std::size_t>(layer.height.dilation * layer.width.input) * layer.inputs),
        column_step_(static_cast<std::size_t>(layer.width.dilation) * layer.inputs),
        joined_(layer.width.dilation == 1 && channels.group_inputs == layer.inputs),
        padding_(static_cast<std::int8_t>(-layer.input_offset)) {}

  static bool is_possible(const ImageLayer& layer, const Channels& channels) {
    return channels.weight_step > channels.group_inputs && channels.weight_step <= largest_copy &&
           layer.input_offset >= -127 && layer.input_offset <= 128;
  }

  const std::int8_t* copy(const Window& window) {
    if (!window.is_whole()) {
      std::fill_n(copy_, size_, padding_);
      if (window.is_empty()) {
        return copy_;
      }
    }
    const auto row = static_cast<std::size_t>(window.rows.first);
    const auto column = static_cast<std::size_t>(window.columns.first);
    const std::int8_t* from = window.from + row * row_step_ + column * column_step_;
    std::int8_t* to = copy_ + (row * kernel_width_ + column) * inputs_;
    const std::size_t rows = window.rows.count();
    const std::size_t columns = window.columns.count();
    if (joined_) {
      copy_rows(from, to, {rows, columns * inputs_, row_step_, kernel_width_ * inputs_});
      return copy_;
    }
    for (std::size_t i = 0; i < rows; ++i) {
      copy_rows(from + i * row_step_, to + i * kernel_width_ * inputs_,
                {columns, inputs_, column_step_, inputs_});
    }
    return copy_;
  }

 private:
  std::size_t inputs_;
  std::size_t size_;
  std::size_t kernel_width_;
  std::size_t row_step_;
  std::size_t column_step_;
  bool joined_;
  std::int8_t padding_;
  std::int8_t copy_[largest_copy];
};

void convolve_some(const ImageLayer& layer, const Channels& channels) {
  std::int32_t biases[channels_at_once];
  std::int32_t starts[channels_at_once];  // with the offset's share of a whole window
  const auto taps = static_cast<std::size_t>(layer.height.kernel * layer.width.kernel);
  for (std::size_t k = 0; k < channels.count; ++k) {
    biases[k] = layer.bias_of(channels.first + k);
    starts[k] =
        wrapping_sum(biases[k], wrapping_product(layer.input_offset, channels.weight_sum(k, 0, taps)));
  }
  const bool copies = WindowCopy::is_possible(layer, channels);
  WindowCopy window_copy(layer, channels);
  for_each_pixel(layer, channels.first_input, [&](const Window& window, std::int8_t* to) {
    std::int32_t sums[channels_at_once];
    if (copies || (taps == 1 && window.is_whole())) {
      const std::int8_t* const values = copies ? window_copy.copy(window) : window.from;
      dot_products(starts, sums, values, channels.weights, channels.weight_step, channels.weight_step,
                   channels.count);
    } else {
      std::copy_n(window.is_whole() ? starts : biases, channels.count, sums);
      add_window(sums, layer, channels, window);
    }
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

// A whole window of one channel, but for where its values begin. Weights: rows, columns, outputs.
Taps whole_taps(const ImageLayer& layer) {
  return {nullptr,
          layer.weight,
          static_cast<std::size_t>(layer.height.kernel),
          static_cast<std::size_t>(layer.width.kernel),
          static_cast<std::size_t>(layer.height.dilation * layer.width.input) * layer.inputs,
          static_cast<std::size_t>(layer.width.dilation) * layer.inputs,
          static_cast<std::size_t>(layer.width.kernel) * layer.outputs,
          layer.outputs};
}

// Those of the taps that lie on the input.
Taps taps_inside(Taps taps, const Window& window) {
  taps.values = window.from;
  if (!window.is_whole()) {
    const auto row = static_cast<std::size_t>(window.rows.first);
    const auto column = static_cast<std::size_t>(window.columns.first);
    taps.values += row * taps.value_row_step + column * taps.value_column_step;
    taps.weights += row * taps.weight_row_step + column * taps.weight_column_step;
    taps.rows = window.rows.count();
    taps.columns = window.columns.count();
  }
  return taps;
}

// The output channels from `first` on of one pixel: one for each input channel, or `multiplier` that share
// one.
void convolve_block(const ImageLayer& layer, Taps taps, std::size_t multiplier, std::size_t first,
                    std::size_t count, std::int8_t* to) {
  std::int32_t sums[channels_at_once];
  if (layer.bias != nullptr) {
    std::copy_n(layer.bias + first, count, sums);
  } else {
    std::fill_n(sums, count, 0);
  }
  taps.values += first / multiplier;
  taps.weights += first;
  if (taps.rows > 0 && taps.columns > 0) {
    (multiplier == 1 ? window_products : shared_window_products)(sums, taps, layer.input_offset, count);
  }
  finish_channels(layer, sums, first, count, to);
}

void convolve_channels(const ImageLayer& layer, std::size_t multiplier) {
  const std::size_t together = multiplier == 1 ? layer.outputs : multiplier;
  const Taps whole = whole_taps(layer);
  for_each_pixel(layer, 0, [&](const Window& window, std::int8_t* to) {
    const Taps taps = taps_inside(whole, window);
    for (std::size_t group = 0; group < layer.outputs; group += together) {
      for (std::size_t k = 0; k < together; k += channels_at_once) {
        convolve_block(layer, taps, multiplier, group + k, std::min(channels_at_once, together - k), to);
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
