// What cortex_m's convolutions share: their arguments, and the requantization of their sums.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/arguments.hpp"
#include "kernels/support/int8_vectors.hpp"
#include "kernels/support/requantize.hpp"
#include "kernels/support/spatial.hpp"

namespace ethosu_sdk::kernels {

// The dimensions of a tensor of images, which lie in memory pixel by pixel.
struct ImageDims {
  std::size_t channel;
  std::size_t height;
  std::size_t width;
};
constexpr ImageDims channels_last = {1, 2, 3};  // by the dimension order of an NCHW tensor
constexpr ImageDims nhwc = {3, 1, 2};           // by the sizes: the operators whose names end in _nhwc

struct ImageLayer {
  const std::int8_t* input;
  const std::int8_t* weight;
  const std::int32_t* bias;  // nullptr: none
  ChannelScales scales;
  std::int8_t* output;
  std::int32_t input_offset;
  OutputRange range;
  SpatialAxis height;
  SpatialAxis width;
  std::size_t images;
  std::size_t inputs;   // channels
  std::size_t outputs;  // channels

  std::int32_t bias_of(std::size_t channel) const { return bias == nullptr ? 0 : bias[channel]; }
};

// The parameters at which the convolutions differ. The others follow one another.
struct LayerPlaces {
  std::size_t dilation;
  std::size_t input_offset;
  std::size_t weight_outputs;  // dimension of the weight
  bool transposed;             // the output's padding is the parameter before the dilation
};

// Reads and checks all arguments, and gives the output its sizes.
ImageLayer read_image_layer(Arguments& arguments, const LayerPlaces& places, const ImageDims& dims,
                            Tensor& output);

// Output channels whose sums are kept at a time.
constexpr std::size_t channels_at_once = 64;

// Requantizes sums of the channels from `first` on to their places in one output pixel.
void finish_channels(const ImageLayer& layer, const std::int32_t* sums, std::size_t first, std::size_t count,
                     std::int8_t* pixel);

}  // namespace ethosu_sdk::kernels
