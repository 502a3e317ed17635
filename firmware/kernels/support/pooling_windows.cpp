#include "kernels/support/pooling_windows.hpp"

#include <algorithm>

namespace ethosu_sdk::kernels {
namespace {

constexpr std::int64_t max_parameter = 0x7FFFFFFF;  // keeps all sums and products below in 64 bits

// Windows start inside the input or its leading padding, also where ceil_mode rounds up.
std::int64_t output_size(const SpatialAxis& axis, bool ceil_mode) {
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

}  // namespace

void read_pool_pair(Arguments& arguments, std::size_t index, std::int64_t minimum, std::int64_t (&pair)[2]) {
  std::int64_t items[2];
  const std::size_t count = arguments.integers(index, items, 2);
  for (std::size_t i = 0; i < 2 && count != 0; ++i) {
    pair[i] = items[count == 1 ? 0 : i];
    if (pair[i] < minimum || pair[i] > max_parameter) {
      arguments.fail(Status::invalid_argument, "item ", i, " of argument ", index, " is ", pair[i]);
    }
  }
}

PoolParameters read_pool_parameters(Arguments& arguments) {
  PoolParameters parameters;
  read_pool_pair(arguments, 1, 1, parameters.kernel);
  for (std::size_t i = 0; i < 2; ++i) {
    parameters.stride[i] = parameters.kernel[i];
  }
  read_pool_pair(arguments, 2, 1, parameters.stride);
  read_pool_pair(arguments, 3, 0, parameters.padding);
  for (std::size_t i = 0; i < 2; ++i) {
    if (arguments.ok() && parameters.padding[i] > parameters.kernel[i] / 2) {
      arguments.fail(Status::invalid_argument, "padding ", parameters.padding[i], " for a kernel of ",
                     parameters.kernel[i]);
    }
  }
  return parameters;
}

PoolGeometry fit_pool(Arguments& arguments, const Tensor& input, const PoolParameters& parameters,
                      std::size_t first, Tensor& output) {
  PoolGeometry geometry{};
  SpatialAxis* const axes[2] = {&geometry.height, &geometry.width};
  if (!arguments.ok()) {
    return geometry;
  }
  if (input.rank != 3 && input.rank != 4) {
    arguments.fail(Status::invalid_argument, "the input has rank ", input.rank);
    return geometry;
  }
  std::int32_t sizes[4] = {};
  std::copy_n(input.sizes, input.rank, sizes);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t dim = first + i;
    SpatialAxis axis = {sizes[dim],
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

}  // namespace ethosu_sdk::kernels
