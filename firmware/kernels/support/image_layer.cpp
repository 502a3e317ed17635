#include "kernels/support/image_layer.hpp"

#include <functional>

#include "kernels/support/layout.hpp"

namespace ethosu_sdk::kernels {
namespace {

constexpr std::int64_t max_parameter = 0xFFFFFFF;  // keeps all sums and products below in 64 bits

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
bool has_pixels(const Tensor& tensor, const ImageDims& dims) {
  const View view = view_of(tensor);
  std::size_t stride = 1;
  const std::size_t inwards[] = {dims.channel, dims.width, dims.height, 0};
  for (const std::size_t dim : inwards) {
    if (view.sizes[dim] != 1 && view.strides[dim] != stride) {
      return false;
    }
    stride *= static_cast<std::size_t>(view.sizes[dim]);
  }
  return true;
}

void expect_image(Arguments& arguments, const Tensor& tensor, const ImageDims& dims, const char* what) {
  arguments.expect_dtype(tensor, ScalarType::int8, what);
  if (arguments.ok() && (tensor.rank != 4 || !has_pixels(tensor, dims))) {
    arguments.fail(Status::unsupported_argument, what, " is no image with channels last");
  }
}

void check_axis(Arguments& arguments, const SpatialAxis& axis) {
  if (arguments.ok() && (axis.output < 1 || axis.output > max_parameter || axis.kernel < 1)) {
    arguments.fail(Status::invalid_argument, "a kernel of ", axis.kernel, " on an input of ", axis.input);
  }
}

// The sizes of weights are rows and columns in dimensions 1 and 2.
void read_axes(Arguments& arguments, const LayerPlaces& places, const ImageDims& dims, const Tensor& input,
               const Tensor& weight, ImageLayer& layer) {
  std::int64_t stride[2] = {};
  std::int64_t padding[2] = {};
  std::int64_t more[2] = {};
  std::int64_t dilation[2] = {};
  read_pair(arguments, 3, 1, stride);
  read_pair(arguments, 4, 0, padding);
  if (places.transposed) {
    read_pair(arguments, places.dilation - 1, 0, more);
  }
  read_pair(arguments, places.dilation, 1, dilation);
  if (!arguments.ok()) {
    return;
  }
  SpatialAxis* const axes[2] = {&layer.height, &layer.width};
  const std::size_t sizes[2] = {dims.height, dims.width};
  for (std::size_t i = 0; i < 2; ++i) {
    SpatialAxis& axis = *axes[i];
    axis = {input.sizes[sizes[i]], 0, weight.sizes[1 + i], stride[i], padding[i], dilation[i]};
    if (places.transposed && more[i] >= stride[i] && more[i] >= dilation[i]) {
      arguments.fail(Status::invalid_argument, "an output padding of ", more[i]);
    }
    axis.output = places.transposed ? axis.transposed_size(more[i]) : axis.windows();
    check_axis(arguments, axis);
  }
}

void read_scales(Arguments& arguments, std::size_t index, ImageLayer& layer) {
  layer.scales = {read_int32s(arguments, arguments.tensor(index), layer.outputs),
                  read_int32s(arguments, arguments.tensor(index + 1), layer.outputs), true};
  for (std::size_t i = 0; i < layer.outputs && arguments.ok(); ++i) {
    const bool is_plain =
        checked_requantization(arguments, layer.scales.multipliers[i], layer.scales.shifts[i]).is_plain();
    layer.scales.are_plain = layer.scales.are_plain && is_plain;
  }
}

bool share_memory(const Tensor& left, const Tensor& right) {
  const auto* const first = left.as<const std::uint8_t>();
  const auto* const second = right.as<const std::uint8_t>();
  const std::less<> before;
  return before(first, second + right.byte_count()) && before(second, first + left.byte_count());
}

// The shifts were checked, and stay as they are.
void expect_apart(Arguments& arguments, const Tensor& output, std::size_t multipliers) {
  for (std::size_t index = multipliers; index <= multipliers + 1; ++index) {
    if (arguments.ok() && share_memory(output, arguments.tensor(index))) {
      arguments.fail(Status::unsupported_argument, "the output has the memory of argument ", index);
    }
  }
}

void fit_output(Arguments& arguments, const ImageDims& dims, const ImageLayer& layer, std::int32_t images,
                Tensor& output) {
  std::int32_t sizes[4] = {};
  sizes[0] = images;
  sizes[dims.channel] = static_cast<std::int32_t>(layer.outputs);
  sizes[dims.height] = static_cast<std::int32_t>(layer.height.output);
  sizes[dims.width] = static_cast<std::int32_t>(layer.width.output);
  if (arguments.resize(output, sizes, 4) == Status::ok) {
    expect_image(arguments, output, dims, "the output");
  }
}

}  // namespace

ImageLayer read_image_layer(Arguments& arguments, const LayerPlaces& places, const ImageDims& dims,
                            Tensor& output) {
  ImageLayer layer{};
  const Tensor& input = arguments.tensor(0);
  const Tensor& weight = arguments.tensor(1);
  const Tensor* const bias = arguments.optional_tensor(2);
  expect_image(arguments, input, dims, "the input");
  arguments.expect_dtype(weight, ScalarType::int8, "the weight");
  arguments.expect_contiguous(weight, "the weight");
  if (arguments.ok() && weight.rank != 4) {
    arguments.fail(Status::invalid_argument, "a weight of rank ", weight.rank);
  }
  read_axes(arguments, places, dims, input, weight, layer);
  layer.input_offset = read_int32(arguments, places.input_offset);
  layer.range =
      read_output_range(arguments, places.input_offset + 1, places.input_offset + 4, places.input_offset + 5);
  if (!arguments.ok()) {
    return layer;
  }
  layer.images = static_cast<std::size_t>(input.sizes[0]);
  layer.inputs = static_cast<std::size_t>(input.sizes[dims.channel]);
  layer.outputs = static_cast<std::size_t>(weight.sizes[places.weight_outputs]);
  read_scales(arguments, places.input_offset + 2, layer);
  if (bias != nullptr) {
    layer.bias = read_int32s(arguments, *bias, layer.outputs);
  }
  fit_output(arguments, dims, layer, input.sizes[0], output);
  expect_apart(arguments, output, places.input_offset + 2);
  layer.input = input.as<const std::int8_t>();
  layer.weight = weight.as<const std::int8_t>();
  layer.output = output.as<std::int8_t>();
  return layer;
}

void finish_channels(const ImageLayer& layer, const std::int32_t* sums, std::size_t first, std::size_t count,
                     std::int8_t* pixel) {
  requantize_all(sums, layer.scales.from(first), layer.range, pixel + first, count);
}

}  // namespace ethosu_sdk::kernels
