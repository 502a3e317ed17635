// aten::sum, mean, prod, amax, amin, any, var and var_mean over some dimensions; max and min over all.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/kernels.hpp"
#include "kernels/support/dispatch.hpp"
#include "kernels/support/operations.hpp"
#include "kernels/support/reduction.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

template <typename Compute>
Compute either(Compute left, Compute right) {
  return left != Compute{0} || right != Compute{0} ? Compute{1} : Compute{0};
}
// The first NaN stays.
template <typename Compute>
Compute greater_of(Compute found, Compute next) {
  return found == found && (next != next || next > found) ? next : found;
}
template <typename Compute>
Compute lesser_of(Compute found, Compute next) {
  return found == found && (next != next || next < found) ? next : found;
}

// What a result starts with, and how an element is joined to it.
struct Fold {
  enum class Start : std::uint8_t { zero, one, first } start;
  BinaryOperations step;
};

template <typename Compute>
Status fold_by(Arguments& arguments, const Tensor& input, const Reduction& reduction, const View& to,
               Tensor& output, Fold::Start start, Binary<Compute> step) {
  const auto load = load_of<Compute>(input.dtype);
  const auto store = store_of<Compute>(output.dtype);
  if (load == nullptr || store == nullptr) {
    return arguments.unsupported_dtype(input);
  }
  for_each_result(reduction, to, [&](std::size_t first, std::size_t result) {
    Compute value = start == Fold::Start::first ? load(input.data, first)
                                                : static_cast<Compute>(start == Fold::Start::one ? 1 : 0);
    for_each_reduced(reduction, first, [&](std::size_t at) { value = step(value, load(input.data, at)); });
    store(output.data, result, value);
  });
  return arguments.status();
}

// Computes in `common`.
Status fold(Arguments& arguments, const Tensor& input, const Reduction& reduction, bool keep_dims,
            Tensor& output, ScalarType common, const Fold& fold) {
  if (arguments.ok() && fold.start == Fold::Start::first && reduction.count == 0) {
    arguments.fail(Status::invalid_argument, "no element to choose from");
  }
  const View to = arguments.ok() ? resize_to_kept(arguments, reduction, keep_dims, output) : View{};
  if (!arguments.ok()) {
    return arguments.status();
  }
  return with_compute_type(common, [&](auto type) {
    using Compute = type_of<decltype(type)>;
    return fold_by(arguments, input, reduction, to, output, fold.start, fold.step.get<Compute>());
  });
}

constexpr Fold addition = {Fold::Start::zero, {wrapping_sum, wrapping_sum, wrapping_sum}};
constexpr Fold product = {Fold::Start::one, {wrapping_product, wrapping_product, wrapping_product}};
constexpr Fold disjunction = {Fold::Start::zero, {either<std::int64_t>, either<float>, either<double>}};
constexpr Fold greatest = {Fold::Start::first,
                           {greater_of<std::int64_t>, greater_of<float>, greater_of<double>}};
constexpr Fold least = {Fold::Start::first, {lesser_of<std::int64_t>, lesser_of<float>, lesser_of<double>}};

// self, dim, keepdim, dtype, out
Status join(KernelContext& context, Span<Value* const> values, const Fold& which) {
  Arguments arguments(context, values, 5);
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(4);
  arguments.expect_dtype(output, arguments.scalar_type_or(3, output.dtype), "the output");
  return fold(arguments, input, read_reduction(arguments, input, 1), arguments.boolean(2), output,
              output.dtype, which);
}

// self, dim, keepdim, out: the same dtype.
Status extreme(KernelContext& context, Span<Value* const> values, const Fold& which) {
  Arguments arguments(context, values, 4);
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(3);
  arguments.expect_dtype(output, input.dtype, "the output");
  return fold(arguments, input, read_reduction(arguments, input, 1), arguments.boolean(2), output,
              input.dtype, which);
}

Status extreme_of_all(KernelContext& context, Span<Value* const> values, const Fold& which) {
  Arguments arguments(context, values, 2);
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(1);
  arguments.expect_dtype(output, input.dtype, "the output");
  return fold(arguments, input, reduction_over(arguments, input, nullptr, 0), false, output, input.dtype,
              which);
}

Status any_of(Arguments& arguments, const Tensor& input, const Reduction& reduction, bool keep_dims,
              Tensor& output) {
  if (arguments.ok() && output.dtype != ScalarType::boolean && output.dtype != ScalarType::uint8) {
    arguments.unsupported_dtype(output);
  }
  return fold(arguments, input, reduction, keep_dims, output, input.dtype, disjunction);
}

Status mean(Arguments& arguments, const Tensor& input, const Reduction& reduction, bool keep_dims,
            Tensor& output) {
  const View to = arguments.ok() ? resize_to_kept(arguments, reduction, keep_dims, output) : View{};
  if (!arguments.ok()) {
    return arguments.status();
  }
  const bool supported = for_float(output.dtype, [&](auto type) {
    using Float = type_of<decltype(type)>;
    const auto load = load_of<Float>(input.dtype);
    if (load == nullptr) {
      return false;
    }
    for_each_result(reduction, to, [&](std::size_t first, std::size_t result) {
      Float sum = 0;
      for_each_reduced(reduction, first, [&](std::size_t at) { sum += load(input.data, at); });
      output.as<Float>()[result] = sum / static_cast<Float>(reduction.count);
    });
    return true;
  });
  return supported ? arguments.status() : arguments.unsupported_dtype(input);
}

// The mean first, then the squares of what differs from it. `means` may be nullptr.
Status variance(Arguments& arguments, const Tensor& input, const Reduction& reduction, double correction,
                bool keep_dims, Tensor& output, Tensor* means) {
  if (arguments.ok() && input.dtype != ScalarType::float32) {
    arguments.unsupported_dtype(input);
  }
  arguments.expect_dtype(output, ScalarType::float32, "the output");
  const View to = arguments.ok() ? resize_to_kept(arguments, reduction, keep_dims, output) : View{};
  View means_to;
  if (means != nullptr && arguments.expect_dtype(*means, ScalarType::float32, "the mean") == Status::ok) {
    means_to = resize_to_kept(arguments, reduction, keep_dims, *means);
  }
  if (!arguments.ok()) {
    return arguments.status();
  }
  const auto count = static_cast<float>(reduction.count);
  const double divisor = static_cast<double>(reduction.count) - correction;
  const auto* const from = input.as<const float>();
  walk({&reduction.results, &to, &means_to}, [&](const std::size_t(&at)[3]) {
    float sum = 0;
    for_each_reduced(reduction, at[0], [&](std::size_t element) { sum += from[element]; });
    const float average = sum / count;
    float squares = 0;
    for_each_reduced(reduction, at[0], [&](std::size_t element) {
      const float difference = from[element] - average;
      squares += difference * difference;
    });
    const bool defined = reduction.count != 0 && divisor > 0;
    output.as<float>()[at[1]] = defined ? static_cast<float>(static_cast<double>(squares) / divisor)
                                        : std::numeric_limits<float>::quiet_NaN();
    if (means != nullptr) {
      means->as<float>()[at[2]] = average;
    }
  });
  return arguments.status();
}

}  // namespace

Status sum_out(KernelContext& context, Span<Value* const> values) {
  return join(context, values, addition);
}

Status prod_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);  // self, dtype, out: over all dimensions
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(output, arguments.scalar_type_or(1, output.dtype), "the output");
  return fold(arguments, input, reduction_over(arguments, input, nullptr, 0), false, output, output.dtype,
              product);
}

Status prod_int_out(KernelContext& context, Span<Value* const> values) {
  return join(context, values, product);
}

Status amax_out(KernelContext& context, Span<Value* const> values) {
  return extreme(context, values, greatest);
}

Status amin_out(KernelContext& context, Span<Value* const> values) {
  return extreme(context, values, least);
}

Status max_unary_out(KernelContext& context, Span<Value* const> values) {
  return extreme_of_all(context, values, greatest);
}

Status min_unary_out(KernelContext& context, Span<Value* const> values) {
  return extreme_of_all(context, values, least);
}

Status any_all_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 2);
  const Tensor& input = arguments.tensor(0);
  return any_of(arguments, input, reduction_over(arguments, input, nullptr, 0), false, arguments.output(1));
}

Status any_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, dim or dims, keepdim, out
  const Tensor& input = arguments.tensor(0);
  return any_of(arguments, input, read_reduction(arguments, input, 1), arguments.boolean(2),
                arguments.output(3));
}

Status mean_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, dim, keepdim, dtype, out
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(4);
  arguments.expect_dtype(output, arguments.scalar_type_or(3, input.dtype), "the output");
  return mean(arguments, input, read_reduction(arguments, input, 1), arguments.boolean(2), output);
}

Status mean_dtype_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);  // self, dtype, out: over all dimensions
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(output, arguments.scalar_type_or(1, input.dtype), "the output");
  return mean(arguments, input, reduction_over(arguments, input, nullptr, 0), false, output);
}

Status var_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, dim, unbiased, keepdim, out
  const Tensor& input = arguments.tensor(0);
  const double correction = arguments.boolean(2) ? 1 : 0;
  return variance(arguments, input, read_reduction(arguments, input, 1), correction, arguments.boolean(3),
                  arguments.output(4), nullptr);
}

Status var_correction_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, dim, correction, keepdim, out
  const Tensor& input = arguments.tensor(0);
  const double correction = arguments.is_none(2) ? 1 : arguments.real(2);
  return variance(arguments, input, read_reduction(arguments, input, 1), correction, arguments.boolean(3),
                  arguments.output(4), nullptr);
}

Status var_mean_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 6);  // self, dim, correction, keepdim, the variance, the mean
  const Tensor& input = arguments.tensor(0);
  const double correction = arguments.is_none(2) ? 1 : arguments.real(2);
  Tensor& means = arguments.output(5);
  return variance(arguments, input, read_reduction(arguments, input, 1), correction, arguments.boolean(3),
                  arguments.output(4), &means);
}

}  // namespace ethosu_sdk::kernels
