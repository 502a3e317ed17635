// aten::avg_pool2d and aten::max_pool2d_with_indices.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/kernels.hpp"
#include "kernels/support/arguments.hpp"
#include "kernels/support/dispatch.hpp"
#include "kernels/support/pooling_windows.hpp"
#include "kernels/support/walk.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

// Windows have at least one element: they start inside the input or its leading padding, which is at most
// half of them. -0 + x is x for all x, where 0 + -0 would be +0.
template <typename T>
struct SumWindow {
  void add(T value, std::int64_t /*index*/) {
    if constexpr (std::is_same_v<T, std::int64_t>) {
      sum = wrapping_sum(sum, value);
    } else {
      sum = static_cast<T>(sum + value);
    }
  }
  T sum = static_cast<T>(-0.0F);
};

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
void average(const Tensor& input, Tensor& output, const PoolGeometry& geometry, bool count_padding,
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
void maximum(const Tensor& input, Tensor& output, Tensor& indices, const PoolGeometry& geometry) {
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

}  // namespace

Status avg_pool2d_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 8);
  const Tensor& input = arguments.tensor(0);
  PoolParameters parameters = read_pool_parameters(arguments);
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
  const PoolGeometry geometry = fit_planes(arguments, input, parameters, output);
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
  PoolParameters parameters = read_pool_parameters(arguments);
  read_pool_pair(arguments, 4, 1, parameters.dilation);
  parameters.ceil_mode = arguments.boolean(5);
  Tensor& output = arguments.output(6);
  Tensor& indices = arguments.output(7);
  arguments.expect_dtype(output, input.dtype, "the output");
  arguments.expect_dtype(indices, ScalarType::int64, "the indices");
  arguments.expect_same_dim_order(input, output);
  arguments.expect_same_dim_order(input, indices);
  const PoolGeometry geometry = fit_planes(arguments, input, parameters, output);
  if (arguments.resize_like(indices, output) != Status::ok) {
    return arguments.status();
  }
  const bool supported = for_real(
      input.dtype, [&](auto type) { maximum<type_of<decltype(type)>>(input, output, indices, geometry); });
  return supported ? arguments.status() : arguments.unsupported_dtype(input);
}

}  // namespace ethosu_sdk::kernels
