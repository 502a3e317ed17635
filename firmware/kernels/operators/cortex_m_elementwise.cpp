// cortex_m::quantized_add, quantized_mul, quantized_div, quantized_activation and pad: int8 with CMSIS-NN's
// arithmetic.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/kernels.hpp"
#include "kernels/operators/fill.hpp"
#include "kernels/support/copy.hpp"
#include "kernels/support/elementwise.hpp"
#include "kernels/support/int8_vectors.hpp"

namespace ethosu_sdk::kernels {
namespace {

// Of one operand: the zero point is subtracted.
std::int32_t distance(std::int8_t value, std::int32_t zero_point) {
  return wrapping_difference(std::int32_t{value}, zero_point);
}

// The view's dimensions in the order in which those of `output` lie in memory.
View in_memory_order(const Tensor& output, const View& view) {
  std::size_t order[max_rank] = {};
  std::copy_n(output.dim_order, output.rank, order);
  return chosen_dims(view, order, output.rank);
}

// Two int8 tensors that broadcast against each other: `row(left, right, to, count)` computes elements that
// are next to one another in all three, `element(left, right)` the others.
template <typename Row, typename Element>
Status map_int8(Arguments& arguments, const Tensor& left, const Tensor& right, Tensor& output, Row&& row,
                Element&& element) {
  arguments.expect_dtype(left, ScalarType::int8, "the first operand");
  arguments.expect_dtype(right, ScalarType::int8, "the second operand");
  arguments.expect_dtype(output, ScalarType::int8, "the output");
  if (!arguments.ok() || resize_to_broadcast(arguments, left, right, output) != Status::ok) {
    return arguments.status();
  }
  const View from_left = in_memory_order(output, broadcast_view(left, output.sizes, output.rank));
  const View from_right = in_memory_order(output, broadcast_view(right, output.sizes, output.rank));
  const View to = in_memory_order(output, view_of(output));
  const View* const views[] = {&from_left, &from_right, &to};
  const Loops<3> loops = loops_over(views);
  walk_rows(loops, views, [&](const std::size_t(&at)[3]) {
    const auto* const lefts = left.as<const std::int8_t>() + at[0];
    const auto* const rights = right.as<const std::int8_t>() + at[1];
    auto* const results = output.as<std::int8_t>() + at[2];
    const std::size_t(&steps)[3] = loops.strides[loops.depth - 1];
    const std::size_t count = loops.sizes[loops.depth - 1];
    if (steps[0] == 1 && steps[1] == 1 && steps[2] == 1) {
      row(lefts, rights, results, count);
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      results[i * steps[2]] = element(lefts[i * steps[0]], rights[i * steps[1]]);
    }
  });
  return arguments.status();
}

Addend read_addend(Arguments& arguments, std::size_t index) {
  return {read_int32(arguments, index), read_requantization(arguments, index + 1)};
}

// A quotient in float, as the reference computes it: 0 where the divisor is 0.
struct Division {
  std::int32_t left_zero;
  std::int32_t right_zero;
  float zero_point;
  float scale;

  template <typename Integer>
  Integer quotient(Integer left, Integer right) const {
    const auto divisor = static_cast<float>(wrapping_difference(std::int32_t{right}, right_zero));
    const auto dividend = static_cast<float>(wrapping_difference(std::int32_t{left}, left_zero));
    const float quotient = divisor == 0 ? 0 : dividend / divisor;
    const float rounded = std::nearbyint(quotient * scale) + zero_point;
    constexpr auto minimum = static_cast<float>(std::numeric_limits<Integer>::min());
    constexpr auto maximum = static_cast<float>(std::numeric_limits<Integer>::max());
    return static_cast<Integer>(std::min(std::max(rounded, minimum), maximum));
  }
};

template <typename Integer>
void divide_all(const Division& division, const Tensor& left, const Tensor& right, Tensor& output) {
  const View from_left = view_of(left);
  const View from_right = view_of(right);
  const View to = view_of(output);
  walk({&from_left, &from_right, &to}, [&](const std::size_t(&at)[3]) {
    output.as<Integer>()[at[2]] =
        division.quotient(left.as<const Integer>()[at[0]], right.as<const Integer>()[at[1]]);
  });
}

// As the dialect decides it: a tensor whose elements lie alike in both orders counts as channels_last.
bool is_channels_last(const Tensor& tensor) {
  return tensor.rank == 4 && (tensor.sizes[1] == 1 || (tensor.sizes[2] == 1 && tensor.sizes[3] == 1) ||
                              (tensor.dim_order[0] == 0 && tensor.dim_order[1] == 2));
}

// Four margins: of the dimensions, behind those that the tensor lacks; of channels_last in memory order.
void read_margins(Arguments& arguments, std::size_t index, const Tensor& input, std::int64_t (&margins)[4]) {
  std::int64_t stored[4] = {};
  if (arguments.integers(index, stored, 4) != 4 || input.rank > 4) {
    arguments.fail(Status::invalid_argument, "margins for a tensor of rank ", input.rank);
    return;
  }
  constexpr std::size_t stored_last[] = {0, 2, 3, 1};
  const bool channels_last = is_channels_last(input);
  const std::size_t missing = 4u - input.rank;
  for (std::size_t i = 0; i < 4; ++i) {
    if (stored[i] < 0 || stored[i] > 0x7FFFFFFF || (i < missing && stored[i] != 0)) {
      arguments.fail(Status::invalid_argument, "a margin of ", stored[i]);
      return;
    }
    if (i >= missing) {
      margins[channels_last ? stored_last[i] : i - missing] = stored[i];
    }
  }
}

}  // namespace

Status cortex_m_quantized_add_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 14);
  const Addition addition = {read_addend(arguments, 1), read_addend(arguments, 5),
                             read_requantization(arguments, 9), read_output_range(arguments, 8, 11, 12)};
  const Tensor& left = arguments.tensor(0);
  const Tensor& right = arguments.tensor(4);
  Tensor& output = arguments.output(13);
  return map_int8(
      arguments, left, right, output,
      [&](const std::int8_t* lefts, const std::int8_t* rights, std::int8_t* to, std::size_t count) {
        add_all(addition, lefts, rights, to, count);
      },
      [&](std::int8_t a, std::int8_t b) { return addition.sum(a, b); });
}

Status cortex_m_quantized_mul_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 8);
  const std::int32_t left_zero = read_int32(arguments, 1);
  const std::int32_t right_zero = read_int32(arguments, 3);
  OutputRange range;
  range.offset = read_int32(arguments, 4);
  const Requantization scale = read_requantization(arguments, 5);
  const auto multiply = [&](std::int8_t left, std::int8_t right) {
    const std::int32_t product = wrapping_product(distance(left, left_zero), distance(right, right_zero));
    return in_range(requantize(product, scale), range);
  };
  const auto multiply_all = [&](const std::int8_t* left, const std::int8_t* right, std::int8_t* to,
                                std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = multiply(left[i], right[i]);
    }
  };
  return map_int8(arguments, arguments.tensor(0), arguments.tensor(2), arguments.output(7), multiply_all,
                  multiply);
}

Status cortex_m_quantized_div_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 7);
  const Tensor& left = arguments.tensor(0);
  const Tensor& right = arguments.tensor(2);
  const Division division = {read_int32(arguments, 1), read_int32(arguments, 3),
                             static_cast<float>(read_int32(arguments, 4)),
                             static_cast<float>(arguments.real(5))};
  Tensor& output = arguments.output(6);
  arguments.expect_dtype(right, left.dtype, "the second operand");
  arguments.expect_dtype(output, left.dtype, "the output");
  if (arguments.ok() && !std::isfinite(division.scale)) {
    arguments.fail(Status::invalid_argument, "a scale that is not finite");
  }
  if (arguments.ok() &&
      (left.rank != right.rank || !std::equal(left.sizes, left.sizes + left.rank, right.sizes))) {
    arguments.fail(Status::shape_mismatch, "operands of rank ", left.rank, " and ", right.rank);
  }
  if (arguments.resize_like(output, left) != Status::ok) {
    return arguments.status();
  }
  if (left.dtype != ScalarType::int8 && left.dtype != ScalarType::int16) {
    return arguments.unsupported_dtype(left);
  }
  (left.dtype == ScalarType::int8 ? divide_all<std::int8_t> : divide_all<std::int16_t>)(division, left, right,
                                                                                        output);
  return arguments.status();
}

Status cortex_m_quantized_activation_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  const Tensor& table = arguments.tensor(1);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(input, ScalarType::int8, "the input");
  arguments.expect_dtype(table, ScalarType::int8, "the table");
  arguments.expect_dtype(output, ScalarType::int8, "the output");
  if (arguments.ok() && table.element_count() != 256) {
    arguments.fail(Status::shape_mismatch, "a table of ", table.element_count());
  }
  if (!arguments.ok() || arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  const View from = view_of(input);
  const View to = view_of(output);
  const auto* const entries = table.as<const std::int8_t>();
  walk({&from, &to}, [&](const std::size_t(&at)[2]) {
    output.as<std::int8_t>()[at[1]] = entries[input.as<const std::int8_t>()[at[0]] + 128];
  });
  return arguments.status();
}

Status cortex_m_pad_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // input, pre_pad, post_pad, pad_value, out
  const Tensor& input = arguments.tensor(0);
  std::int64_t before[4] = {};
  std::int64_t after[4] = {};
  if (arguments.ok()) {
    read_margins(arguments, 1, input, before);
    read_margins(arguments, 2, input, after);
  }
  const Scalar padding = arguments.scalar(3);
  Tensor& output = arguments.output(4);
  arguments.expect_dtype(input, ScalarType::int8, "the input");
  arguments.expect_dtype(output, ScalarType::int8, "the output");
  if (arguments.ok() && !(arguments.is_integer(3) && fits<std::int8_t>(padding.integer))) {
    arguments.fail(Status::invalid_argument, "padding with ", padding.integer);
  }
  std::int32_t sizes[max_rank] = {};
  for (std::size_t i = 0; i < input.rank && arguments.ok(); ++i) {
    const std::int64_t size = before[i] + input.sizes[i] + after[i];
    if (size > 0x7FFFFFFF) {
      arguments.fail(Status::invalid_argument, "size ", i, " of the result is ", size);
    }
    sizes[i] = static_cast<std::int32_t>(size);
  }
  if (arguments.resize(output, sizes, input.rank) != Status::ok ||
      fill(arguments, output, padding) != Status::ok) {
    return arguments.status();
  }
  View to = view_of(output);
  for (std::size_t i = 0; i < input.rank; ++i) {
    to = part_of(to, i, before[i], input.sizes[i]);
  }
  copy_elements(input, view_of(input), output, to);
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
