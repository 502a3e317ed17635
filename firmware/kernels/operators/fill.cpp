// aten::full, full_like, fill, zeros, ones, empty, scalar_tensor and arange; dim_order_ops::_empty_dim_order.
#include "kernels/operators/fill.hpp"

#include <cmath>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/elements.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

template <typename Compute>
Status store_in_all(Arguments& arguments, Tensor& output, Compute number) {
  const auto store = store_of<Compute>(output.dtype);
  if (store == nullptr) {
    return arguments.unsupported_dtype(output);
  }
  const std::size_t count = output.element_count();
  for (std::size_t i = 0; i < count; ++i) {
    store(output.data, i, number);
  }
  return arguments.status();
}

constexpr Scalar zero = {ScalarType::int64, 0, 0.0};
constexpr Scalar one = {ScalarType::int64, 1, 1.0};

// size, out
Status filled(KernelContext& context, Span<Value* const> values, const Scalar& number) {
  Arguments arguments(context, values, 2);
  Tensor& output = arguments.output(1);
  return resize_to_list(arguments, 0, output) == Status::ok ? fill(arguments, output, number)
                                                            : arguments.status();
}

// self, number, …, out
Status filled_like(Arguments& arguments, std::size_t output_index) {
  const Tensor& model = arguments.tensor(0);
  const Scalar number = arguments.scalar(1);
  Tensor& output = arguments.output(output_index);
  return arguments.resize_like(output, model) == Status::ok ? fill(arguments, output, number)
                                                            : arguments.status();
}

// start, start + step, … until `end`. Whole numbers are counted as integers.
Status count_up(Arguments& arguments, const Scalar& start, const Scalar& end, const Scalar& step,
                Tensor& output) {
  const double length = std::ceil((end.real - start.real) / step.real);
  if (!arguments.ok() || !(length >= 0 && length <= 2147483647.0)) {
    return arguments.fail(Status::invalid_argument, "a range that does not end");
  }
  const auto count = static_cast<std::int32_t>(length);
  if (arguments.resize(output, &count, 1) != Status::ok) {
    return arguments.status();
  }
  const bool whole = !start.is_real() && !step.is_real();
  const auto store_integer = store_of<std::int64_t>(output.dtype);
  const auto store_real = store_of<double>(output.dtype);
  if (store_integer == nullptr || store_real == nullptr) {
    return arguments.unsupported_dtype(output);
  }
  std::int64_t number = start.integer;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto place = static_cast<std::size_t>(i);
    if (whole) {
      store_integer(output.data, place, number);
      number = wrapping_sum(number, step.integer);
    } else {
      store_real(output.data, place, start.real + i * step.real);
    }
  }
  return arguments.status();
}

}  // namespace

Status fill(Arguments& arguments, Tensor& output, const Scalar& number) {
  if (!arguments.ok()) {
    return arguments.status();
  }
  return number.is_real() ? store_in_all(arguments, output, number.real)
                          : store_in_all(arguments, output, number.integer);
}

Status resize_to_list(Arguments& arguments, std::size_t index, Tensor& output) {
  std::int64_t wanted[max_rank];
  std::int32_t sizes[max_rank] = {};
  const std::size_t rank = arguments.integers(index, wanted, max_rank);
  for (std::size_t i = 0; i < rank; ++i) {
    if (wanted[i] < 0 || wanted[i] > 0x7FFFFFFF) {
      return arguments.fail(Status::invalid_argument, "size ", i, " is ", wanted[i]);
    }
    sizes[i] = static_cast<std::int32_t>(wanted[i]);
  }
  return arguments.resize(output, sizes, rank);
}

Status full_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);  // size, fill_value, out
  const Scalar number = arguments.scalar(1);
  Tensor& output = arguments.output(2);
  return resize_to_list(arguments, 0, output) == Status::ok ? fill(arguments, output, number)
                                                            : arguments.status();
}

Status full_like_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, fill_value, memory_format, out
  return filled_like(arguments, 3);
}

Status fill_scalar_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  return filled_like(arguments, 2);
}

Status fill_tensor_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& model = arguments.tensor(0);
  const Tensor& source = arguments.tensor(1);
  Tensor& output = arguments.output(2);
  if (!arguments.ok() || source.element_count() != 1) {
    return arguments.fail(Status::invalid_argument, "a filling of other than one element");
  }
  Scalar number;
  if (const auto load = load_of<std::int64_t>(source.dtype); load != nullptr) {
    number.integer = load(source.data, 0);
  } else if (const auto load_real = load_of<double>(source.dtype); load_real != nullptr) {
    number = {ScalarType::float64, 0, load_real(source.data, 0)};
  } else {
    return arguments.unsupported_dtype(source);
  }
  return arguments.resize_like(output, model) == Status::ok ? fill(arguments, output, number)
                                                            : arguments.status();
}

Status zeros_out(KernelContext& context, Span<Value* const> values) {
  return filled(context, values, zero);
}

Status ones_out(KernelContext& context, Span<Value* const> values) {
  return filled(context, values, one);
}

// Zeros, too: what is left of earlier tensors would differ from run to run.
Status empty_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);  // size, memory_format or dim_order, out
  Tensor& output = arguments.output(2);
  return resize_to_list(arguments, 0, output) == Status::ok ? fill(arguments, output, zero)
                                                            : arguments.status();
}

Status scalar_tensor_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const Scalar number = arguments.scalar(0);
  Tensor& output = arguments.output(1);
  return arguments.resize(output, nullptr, 0) == Status::ok ? fill(arguments, output, number)
                                                            : arguments.status();
}

Status arange_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const Scalar end = arguments.scalar(0);
  return count_up(arguments, zero, end, one, arguments.output(1));
}

Status arange_start_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // start, end, step, out
  const Scalar start = arguments.scalar(0);
  const Scalar end = arguments.scalar(1);
  const Scalar step = arguments.scalar(2);
  return count_up(arguments, start, end, step, arguments.output(3));
}

}  // namespace ethosu_sdk::kernels
