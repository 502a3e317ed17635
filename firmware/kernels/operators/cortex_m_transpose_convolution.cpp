// cortex_m::quantized_transpose_conv2d and its form for NHWC tensors: int8 with CMSIS-NN's arithmetic.
//
// Outputs that are `stride` apart get their values through the same elements of the kernel. They are one
// phase, and computed together.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "kernels/kernels.hpp"
#include "kernels/support/image_layer.hpp"
#include "kernels/support/int8_vectors.hpp"

namespace ethosu_sdk::kernels {
namespace {

// The elements of the kernel that reach the outputs of one phase, in one dimension: `taps` of them from
// `tap` on, `tap_step` apart. The input element goes back by `input_step` from each to the next.
struct Phase {
  const SpatialAxis* axis;
  std::int64_t tap;
  std::int64_t taps;
  std::int64_t tap_step;
  std::int64_t input_step;

  Phase(const SpatialAxis& of, std::int64_t output) : axis(&of), tap(0), taps(0) {
    const std::int64_t both = std::gcd(of.stride, of.dilation);
    tap_step = of.stride / both;
    input_step = of.dilation / both;
    const std::int64_t most = std::min(tap_step, of.kernel);
    while (tap < most && (output + of.padding - tap * of.dilation) % of.stride != 0) {
      ++tap;
    }
    taps = tap == most ? 0 : (of.kernel - tap - 1) / tap_step + 1;
  }
  // The input element under the first tap; negative or past the end: none.
  std::int64_t element(std::int64_t output) const {
    return (output + axis->padding - tap * axis->dilation) / axis->stride;
  }
};

// Those of a phase's taps that lie on the input for one output element.
struct Reach {
  std::int64_t element;
  std::int64_t first = 0;
  std::int64_t last = 0;

  Reach(const Phase& phase, std::int64_t output) : element(phase.element(output)) {
    if (phase.taps > 0) {
      first = element < phase.axis->input ? 0 : (element - phase.axis->input) / phase.input_step + 1;
      last = element < 0 ? 0 : std::min(phase.taps, element / phase.input_step + 1);
    }
  }
  bool is_whole(const Phase& phase) const { return first == 0 && last == phase.taps; }
};

// Some output channels. Weights: outputs, rows, columns, inputs.
struct Channels {
  std::size_t first;
  std::size_t count;
  std::size_t step;            // from one channel's weights to the next
  const std::int8_t* weights;  // of the first
};

class Transposed {
 public:
  Transposed(const ImageLayer& layer, const Channels& channels, std::int64_t row, std::int64_t column)
      : layer_(layer),
        channels_(channels),
        rows_(layer.height, row),
        columns_(layer.width, column),
        row_(row),
        column_(column) {
    for (std::size_t k = 0; k < channels.count; ++k) {
      biases_[k] = layer.bias_of(channels.first + k);
      starts_[k] = biases_[k];
    }
    for (std::int64_t i = 0; i < rows_.taps && layer.input_offset != 0; ++i) {
      for (std::int64_t j = 0; j < columns_.taps; ++j) {
        add_offset(starts_, i, j);
      }
    }
  }

  // All outputs of the phase.
  void compute() const {
    for (std::size_t image = 0; image < layer_.images; ++image) {
      for (std::int64_t y = row_; y < layer_.height.output; y += layer_.height.stride) {
        const Reach down(rows_, y);
        for (std::int64_t x = column_; x < layer_.width.output; x += layer_.width.stride) {
          compute_pixel(static_cast<std::int64_t>(image), y, x, down, Reach(columns_, x));
        }
      }
    }
  }

 private:
  const std::int8_t* weights_at(std::int64_t i, std::int64_t j) const {
    const std::int64_t row = rows_.tap + i * rows_.tap_step;
    const std::int64_t column = columns_.tap + j * columns_.tap_step;
    return channels_.weights + static_cast<std::size_t>(row * layer_.width.kernel + column) * layer_.inputs;
  }

  // The input offset's share of one tap.
  void add_offset(std::int32_t* sums, std::int64_t i, std::int64_t j) const {
    const std::int8_t* const weights = weights_at(i, j);
    for (std::size_t k = 0; k < channels_.count; ++k) {
      const std::int32_t sum = sum_of(weights + k * channels_.step, layer_.inputs);
      sums[k] = wrapping_sum(sums[k], wrapping_product(layer_.input_offset, sum));
    }
  }

  void compute_pixel(std::int64_t image, std::int64_t y, std::int64_t x, const Reach& down,
                     const Reach& across) const {
    const bool whole = down.is_whole(rows_) && across.is_whole(columns_);
    std::int32_t sums[channels_at_once];
    std::copy_n(whole ? starts_ : biases_, channels_.count, sums);
    for (std::int64_t i = down.first; i < down.last; ++i) {
      const std::int64_t row = image * layer_.height.input + down.element - i * rows_.input_step;
      for (std::int64_t j = across.first; j < across.last; ++j) {
        const std::int64_t pixel = row * layer_.width.input + across.element - j * columns_.input_step;
        dot_products(sums, sums, layer_.input + static_cast<std::size_t>(pixel) * layer_.inputs,
                     weights_at(i, j), channels_.step, layer_.inputs, channels_.count);
        if (!whole && layer_.input_offset != 0) {
          add_offset(sums, i, j);
        }
      }
    }
    const std::int64_t to = (image * layer_.height.output + y) * layer_.width.output + x;
    finish_channels(layer_, sums, channels_.first, channels_.count,
                    layer_.output + static_cast<std::size_t>(to) * layer_.outputs);
  }

  const ImageLayer& layer_;
  const Channels& channels_;
  Phase rows_;
  Phase columns_;
  std::int64_t row_;
  std::int64_t column_;
  std::int32_t biases_[channels_at_once];
  std::int32_t starts_[channels_at_once];  // with the offset's share of all taps
};

void convolve(const ImageLayer& layer) {
  const auto step = static_cast<std::size_t>(layer.height.kernel * layer.width.kernel) * layer.inputs;
  for (std::size_t first = 0; first < layer.outputs; first += channels_at_once) {
    const Channels channels = {first, std::min(channels_at_once, layer.outputs - first), step,
                               layer.weight + first * step};
    for (std::int64_t row = 0; row < std::min(layer.height.stride, layer.height.output); ++row) {
      for (std::int64_t column = 0; column < std::min(layer.width.stride, layer.width.output); ++column) {
        Transposed(layer, channels, row, column).compute();
      }
    }
  }
}

Status transpose_convolution(KernelContext& context, Span<Value* const> values, const ImageDims& dims) {
  Arguments arguments(context, values, 16);
  Tensor& output = arguments.output(15);
  const ImageLayer layer = read_image_layer(arguments, {6, 7, 0, true}, dims, output);
  if (!arguments.ok()) {
    return arguments.status();
  }
  const auto inputs = static_cast<std::size_t>(arguments.tensor(1).sizes[3]);
  if (inputs != layer.inputs) {
    return arguments.fail(Status::shape_mismatch, inputs, " channels for ", layer.inputs);
  }
  convolve(layer);
  return arguments.status();
}

}  // namespace

Status cortex_m_quantized_transpose_conv2d_out(KernelContext& context, Span<Value* const> values) {
  return transpose_convolution(context, values, channels_last);
}

Status cortex_m_quantized_transpose_conv2d_nhwc_out(KernelContext& context, Span<Value* const> values) {
  return transpose_convolution(context, values, nhwc);
}

}  // namespace ethosu_sdk::kernels
