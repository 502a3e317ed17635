// aten::_adaptive_avg_pool2d, upsample_nearest2d and upsample_bilinear2d of planes in the last two
// dimensions.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/copy.hpp"
#include "kernels/support/walk.hpp"

namespace ethosu_sdk::kernels {
namespace {

// Calls `function(first element of the input's plane, row and column in the output's, element of the output)`
// for all of the output.
template <typename Function>
void for_each_pixel(const View& from, const View& to, Function&& function) {
  for_each_plane(from, to, [&](std::size_t input_plane, std::size_t output_plane) {
    walk_indices(to.sizes + to.rank - 2, 2, [&](const std::int32_t* at) {
      const std::size_t place = to.in_plane(static_cast<std::size_t>(at[0]), static_cast<std::size_t>(at[1]));
      function(input_plane, at, output_plane + place);
    });
  });
}

// Gives the output the input's shape with other planes.
Status resize_planes(Arguments& arguments, const Tensor& input, const std::int64_t (&plane)[2],
                     Tensor& output) {
  arguments.expect_dtype(output, input.dtype, "the output");
  if (!arguments.ok() || (input.rank != 3 && input.rank != 4)) {
    return arguments.fail(Status::invalid_argument, "an input of rank ", input.rank);
  }
  std::int32_t sizes[max_rank] = {};
  std::copy_n(input.sizes, input.rank, sizes);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t dim = input.rank - 2u + i;
    if (plane[i] < 0 || plane[i] > 0x7FFFFFFF || (plane[i] != 0 && input.sizes[dim] == 0)) {
      return arguments.fail(Status::invalid_argument, "a plane of ", plane[i], " from ", input.sizes[dim]);
    }
    sizes[dim] = static_cast<std::int32_t>(plane[i]);
  }
  return arguments.resize(output, sizes, input.rank);
}

// The source of an interpolated position: two neighbours and the weight of the second.
struct Source {
  std::size_t low;
  std::size_t high;
  float weight;
};

struct Scale {
  std::int32_t input;
  std::int32_t output;
  float step;  // input positions for each output position
  bool align_corners;

  float position(std::int32_t at) const {
    return align_corners ? step * static_cast<float>(at) : step * (static_cast<float>(at) + 0.5f) - 0.5f;
  }
  // The element at or before a position, by 32-bit conversions: those of 64 bits are functions of the
  // library.
  std::int32_t element(float exact) const {
    return exact < static_cast<float>(input) ? std::min(static_cast<std::int32_t>(exact), input - 1)
                                             : input - 1;
  }
  std::size_t nearest(std::int32_t at) const {
    return static_cast<std::size_t>(element(static_cast<float>(at) * step));
  }
  Source source(std::int32_t at) const {
    const float exact = std::max(position(at), 0.0f);
    const std::int32_t low = element(exact);
    const std::int32_t high = low == input - 1 ? low : low + 1;
    const float weight = std::min(std::max(exact - static_cast<float>(low), 0.0f), 1.0f);
    return {static_cast<std::size_t>(low), static_cast<std::size_t>(high), weight};
  }
};

// Either the sizes of the output's planes or how much larger they are: arguments `sizes` and `factors`.
struct Upsampling {
  Scale height;
  Scale width;
};

Upsampling read_upsampling(Arguments& arguments, const Tensor& input, std::size_t sizes, std::size_t factors,
                           bool align_corners, Tensor& output) {
  std::int64_t plane[2] = {0, 0};
  double factor[2] = {0, 0};
  const bool by_size = !arguments.is_none(sizes);
  if (by_size && arguments.integers(sizes, plane, 2) != 2) {
    arguments.fail(Status::invalid_argument, "a size that is no pair");
  }
  if (!by_size && arguments.reals(factors, factor, 2) != 2) {
    arguments.fail(Status::invalid_argument, "factors that are no pair");
  }
  Upsampling upsampling{};
  Scale* const scales[] = {&upsampling.height, &upsampling.width};
  for (std::size_t i = 0; i < 2 && arguments.ok() && !by_size && input.rank >= 2; ++i) {
    const double size = std::floor(static_cast<double>(input.sizes[input.rank - 2u + i]) * factor[i]);
    if (!(factor[i] > 0 && size <= 2147483647.0)) {
      arguments.fail(Status::invalid_argument, "a factor that gives no size");
      return upsampling;
    }
    plane[i] = static_cast<std::int64_t>(size);
  }
  if (resize_planes(arguments, input, plane, output) != Status::ok) {
    return upsampling;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int32_t from = input.sizes[input.rank - 2u + i];
    const auto to = static_cast<std::int32_t>(plane[i]);
    float step =
        by_size ? static_cast<float>(from) / static_cast<float>(to) : static_cast<float>(1.0 / factor[i]);
    if (align_corners) {
      step = to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1) : 0.0f;
    }
    *scales[i] = {from, to, step, align_corners};
  }
  return upsampling;
}

}  // namespace

Status adaptive_avg_pool2d_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  std::int64_t plane[2] = {0, 0};
  if (arguments.integers(1, plane, 2) != 2) {
    arguments.fail(Status::invalid_argument, "a size that is no pair");
  }
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(input, ScalarType::float32, "the input");
  if (resize_planes(arguments, input, plane, output) != Status::ok) {
    return arguments.status();
  }
  const View from = view_of(input);
  const std::int64_t height = input.sizes[input.rank - 2];
  const std::int64_t width = input.sizes[input.rank - 1];
  // Windows cover the input and may overlap.
  const auto start = [](std::int64_t at, std::int64_t size, std::int64_t count) { return at * size / count; };
  const auto end = [](std::int64_t at, std::int64_t size, std::int64_t count) {
    return ((at + 1) * size + count - 1) / count;
  };
  for_each_pixel(from, view_of(output), [&](std::size_t first, const std::int32_t* at, std::size_t place) {
    const std::int64_t top = start(at[0], height, plane[0]);
    const std::int64_t bottom = end(at[0], height, plane[0]);
    const std::int64_t left = start(at[1], width, plane[1]);
    const std::int64_t right = end(at[1], width, plane[1]);
    float sum = 0;
    for (std::int64_t y = top; y < bottom; ++y) {
      for (std::int64_t x = left; x < right; ++x) {
        sum += input.as<const float>()[first + from.in_plane(static_cast<std::size_t>(y),
                                                             static_cast<std::size_t>(x))];
      }
    }
    output.as<float>()[place] = sum / static_cast<float>((bottom - top) * (right - left));
  });
  return arguments.status();
}

Status upsample_nearest2d_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // input, output_size, scale_factors, out
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(3);
  const Upsampling upsampling = read_upsampling(arguments, input, 1, 2, false, output);
  if (!arguments.ok()) {
    return arguments.status();
  }
  const View from = view_of(input);
  for_each_pixel(from, view_of(output), [&](std::size_t first, const std::int32_t* at, std::size_t place) {
    const std::size_t row = upsampling.height.nearest(at[0]);
    const std::size_t column = upsampling.width.nearest(at[1]);
    copy_element(input, first + from.in_plane(row, column), output, place);
  });
  return arguments.status();
}

Status upsample_bilinear2d_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // input, output_size, align_corners, scale_factors, out
  const Tensor& input = arguments.tensor(0);
  const bool align_corners = arguments.boolean(2);
  Tensor& output = arguments.output(4);
  arguments.expect_dtype(input, ScalarType::float32, "the input");
  const Upsampling upsampling = read_upsampling(arguments, input, 1, 3, align_corners, output);
  if (!arguments.ok()) {
    return arguments.status();
  }
  const View from = view_of(input);
  Source y = upsampling.height.source(0);
  for_each_pixel(from, view_of(output), [&](std::size_t first, const std::int32_t* at, std::size_t place) {
    if (at[1] == 0) {
      y = upsampling.height.source(at[0]);
    }
    const Source x = upsampling.width.source(at[1]);
    const auto row = [&](std::size_t position) {
      const float* const source = input.as<const float>() + first;
      return (1.0f - x.weight) * source[from.in_plane(position, x.low)] +
             x.weight * source[from.in_plane(position, x.high)];
    };
    output.as<float>()[place] = (1.0f - y.weight) * row(y.low) + y.weight * row(y.high);
  });
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
