// Operators on the program's own numbers, which it uses for sizes of dynamic shapes and for control flow:
// executorch_prim::*, aten::sym_size, sym_numel and _local_scalar_dense. Their results are Values.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/convert.hpp"
#include "kernels/support/copy.hpp"
#include "kernels/support/elements.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

void set_integer(Value& result, std::int64_t number) {
  result.kind = ValueKind::integer;
  result.integer = number;
}

void set_real(Value& result, double number) {
  result.kind = ValueKind::real;
  result.real = number;
}

void set_boolean(Value& result, bool truth) {
  result.kind = ValueKind::boolean;
  result.boolean = truth;
}

using IntegerOperation = std::int64_t (*)(std::int64_t, std::int64_t);
using RealOperation = double (*)(double, double);

// Two numbers, of which a real one makes the result real.
Status calculate(KernelContext& context, Span<Value* const> values, IntegerOperation integer,
                 RealOperation real) {
  Arguments arguments(context, values, 3);
  const Scalar left = arguments.scalar(0);
  const Scalar right = arguments.scalar(1);
  Value& result = arguments.result(2);
  if (!arguments.ok()) {
    return arguments.status();
  }
  if (left.is_real() || right.is_real()) {
    set_real(result, real(left.real, right.real));
  } else {
    set_integer(result, integer(left.integer, right.integer));
  }
  return arguments.status();
}

// -1, 0 or 1; 2 for what has no order.
int compared(const Scalar& left, const Scalar& right) {
  if (!left.is_real() && !right.is_real()) {
    return (left.integer > right.integer ? 1 : 0) - (left.integer < right.integer ? 1 : 0);
  }
  if (left.real == right.real) {
    return 0;
  }
  if (left.real < right.real) {
    return -1;
  }
  return left.real > right.real ? 1 : 2;
}

Status compare(KernelContext& context, Span<Value* const> values, bool (*holds)(int order)) {
  Arguments arguments(context, values, 3);
  const Scalar left = arguments.scalar(0);
  const Scalar right = arguments.scalar(1);
  Value& result = arguments.result(2);
  if (arguments.ok()) {
    set_boolean(result, holds(compared(left, right)));
  }
  return arguments.status();
}

Status divide(KernelContext& context, Span<Value* const> values, IntegerOperation integer,
              RealOperation real) {
  Arguments arguments(context, values, 3);
  const Scalar right = arguments.scalar(1);
  if (arguments.ok() && !right.is_real() && right.integer == 0) {
    return arguments.fail(Status::invalid_argument, "integers divided by zero");
  }
  return arguments.ok() ? calculate(context, values, integer, real) : arguments.status();
}

// A real number as an integer, by a rounding of its own.
Status round_by(KernelContext& context, Span<Value* const> values, double (*rounding)(double)) {
  Arguments arguments(context, values, 2);
  const Scalar number = arguments.scalar(0);
  Value& result = arguments.result(1);
  if (arguments.ok()) {
    set_integer(result, number.is_real() ? truncate<std::int64_t>(rounding(number.real)) : number.integer);
  }
  return arguments.status();
}

}  // namespace

Status prim_add(KernelContext& context, Span<Value* const> values) {
  return calculate(context, values, wrapping_sum, [](double left, double right) { return left + right; });
}

Status prim_sub(KernelContext& context, Span<Value* const> values) {
  return calculate(context, values, wrapping_difference,
                   [](double left, double right) { return left - right; });
}

Status prim_mul(KernelContext& context, Span<Value* const> values) {
  return calculate(context, values, wrapping_product, [](double left, double right) { return left * right; });
}

Status prim_floordiv(KernelContext& context, Span<Value* const> values) {
  return divide(context, values, wrapping_floor_quotient,
                [](double left, double right) { return std::floor(left / right); });
}

// C's remainder, of the dividend's sign.
Status prim_mod(KernelContext& context, Span<Value* const> values) {
  return divide(context, values, wrapping_remainder,
                [](double left, double right) { return std::fmod(left, right); });
}

Status prim_truediv(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const double left = arguments.real(0);
  const double right = arguments.real(1);
  Value& result = arguments.result(2);
  if (arguments.ok()) {
    set_real(result, left / right);
  }
  return arguments.status();
}

Status prim_eq(KernelContext& context, Span<Value* const> values) {
  return compare(context, values, [](int order) { return order == 0; });
}

Status prim_gt(KernelContext& context, Span<Value* const> values) {
  return compare(context, values, [](int order) { return order == 1; });
}

Status prim_lt(KernelContext& context, Span<Value* const> values) {
  return compare(context, values, [](int order) { return order == -1; });
}

Status prim_ge(KernelContext& context, Span<Value* const> values) {
  return compare(context, values, [](int order) { return order == 0 || order == 1; });
}

Status prim_le(KernelContext& context, Span<Value* const> values) {
  return compare(context, values, [](int order) { return order == 0 || order == -1; });
}

Status prim_neg(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const Scalar number = arguments.scalar(0);
  Value& result = arguments.result(1);
  if (!arguments.ok()) {
    return arguments.status();
  }
  if (number.is_real()) {
    set_real(result, -number.real);
  } else {
    set_integer(result, wrapping_negative(number.integer));
  }
  return arguments.status();
}

Status prim_ceil(KernelContext& context, Span<Value* const> values) {
  return round_by(context, values, std::ceil);
}

Status prim_round(KernelContext& context, Span<Value* const> values) {
  return round_by(context, values, std::nearbyint);
}

// Also executorch_prim::sym_int.
Status prim_trunc(KernelContext& context, Span<Value* const> values) {
  return round_by(context, values, std::trunc);
}

Status prim_sym_float(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const double number = arguments.real(0);
  Value& result = arguments.result(1);
  if (arguments.ok()) {
    set_real(result, number);
  }
  return arguments.status();
}

Status prim_sym_not(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const bool truth = arguments.boolean(0);
  Value& result = arguments.result(1);
  if (arguments.ok()) {
    set_boolean(result, !truth);
  }
  return arguments.status();
}

Status prim_sym_max(KernelContext& context, Span<Value* const> values) {
  return calculate(
      context, values, [](std::int64_t left, std::int64_t right) { return std::max(left, right); },
      [](double left, double right) { return std::max(left, right); });
}

Status prim_sym_min(KernelContext& context, Span<Value* const> values) {
  return calculate(
      context, values, [](std::int64_t left, std::int64_t right) { return std::min(left, right); },
      [](double left, double right) { return std::min(left, right); });
}

// The tensor's own memory under other sizes: nothing is copied.
Status prim_view(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  std::int32_t sizes[max_rank] = {};
  const std::size_t rank = read_view_sizes(arguments, 1, input, sizes);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(output, input.dtype, "the output");
  arguments.expect_contiguous(input, "the input");
  if (arguments.resize(output, sizes, rank) != Status::ok) {
    return arguments.status();
  }
  if (output.element_count() != input.element_count()) {
    return arguments.fail(Status::shape_mismatch, "a view of ", input.element_count(), " elements as ",
                          output.element_count());
  }
  if (input.constant) {
    return arguments.fail(Status::unsupported_argument, "a view of a constant");
  }
  output.data = input.data;
  output.capacity_bytes = input.capacity_bytes;
  return arguments.status();
}

// Row `index` of the first tensor becomes the second, and the first has as many rows as are written.
Status prim_copy_index(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);  // copy_to, copy_from, index
  Tensor& output = arguments.output(0);
  const Tensor& source = arguments.tensor(1);
  const std::int64_t row = arguments.integer(2);
  arguments.expect_dtype(output, source.dtype, "the output");
  arguments.expect_contiguous(output, "the output");
  arguments.expect_contiguous(source, "the source");
  if (!arguments.ok() || output.rank != source.rank + 1u || row < 0 || row >= 0x7FFFFFFF) {
    return arguments.fail(Status::invalid_argument, "row ", row, " of a tensor of rank ", output.rank);
  }
  std::int32_t sizes[max_rank] = {static_cast<std::int32_t>(row + 1)};
  std::copy_n(source.sizes, source.rank, sizes + 1);
  if (output.resizable || row >= output.sizes[0]) {
    arguments.resize(output, sizes, output.rank);
  } else if (!std::equal(source.sizes, source.sizes + source.rank, output.sizes + 1)) {
    arguments.fail(Status::shape_mismatch, "the row has other sizes");
  }
  if (arguments.ok()) {
    copy_elements(source, view_of(source), output,
                  slice_at(view_of(output), 0, static_cast<std::size_t>(row)));
  }
  return arguments.status();
}

Status sym_size_int(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  Value& result = arguments.result(2);
  if (!arguments.ok() || input.rank == 0) {
    return arguments.fail(Status::invalid_argument, "a size of a tensor of rank ", input.rank);
  }
  set_integer(result, input.sizes[dim]);
  return arguments.status();
}

Status sym_numel(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const Tensor& input = arguments.tensor(0);
  Value& result = arguments.result(1);
  if (arguments.ok()) {
    set_integer(result, static_cast<std::int64_t>(input.element_count()));
  }
  return arguments.status();
}

Status local_scalar_dense(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const Tensor& input = arguments.tensor(0);
  Value& result = arguments.result(1);
  if (!arguments.ok() || input.element_count() == 0) {
    return arguments.fail(Status::invalid_argument, "the number of an empty tensor");
  }
  if (input.dtype == ScalarType::boolean) {
    set_boolean(result, *input.as<const std::uint8_t>() != 0);
  } else if (const auto load = load_of<std::int64_t>(input.dtype); load != nullptr) {
    set_integer(result, load(input.data, 0));
  } else if (const auto load_real = load_of<double>(input.dtype); load_real != nullptr) {
    set_real(result, load_real(input.data, 0));
  } else {
    arguments.unsupported_dtype(input);
  }
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
