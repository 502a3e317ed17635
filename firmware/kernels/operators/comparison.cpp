// aten::eq, ne, lt, le, gt and ge, of two tensors and of a tensor and a number; aten::isnan and isinf.
#include <cmath>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/operations.hpp"

namespace ethosu_sdk::kernels {
namespace {

template <typename Compute>
struct Equal {
  static Compute apply(Compute left, Compute right) { return left == right ? Compute{1} : Compute{0}; }
};
template <typename Compute>
struct NotEqual {
  static Compute apply(Compute left, Compute right) { return left != right ? Compute{1} : Compute{0}; }
};
template <typename Compute>
struct Less {
  static Compute apply(Compute left, Compute right) { return left < right ? Compute{1} : Compute{0}; }
};
template <typename Compute>
struct LessEqual {
  static Compute apply(Compute left, Compute right) { return left <= right ? Compute{1} : Compute{0}; }
};
template <typename Compute>
struct Greater {
  static Compute apply(Compute left, Compute right) { return left > right ? Compute{1} : Compute{0}; }
};
template <typename Compute>
struct GreaterEqual {
  static Compute apply(Compute left, Compute right) { return left >= right ? Compute{1} : Compute{0}; }
};

template <template <typename> class Comparison>
Status compare(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Operand left(arguments, 0);
  const Operand right(arguments, 1);
  return compute_binary(
      arguments, left.tensor(), right.tensor(), arguments.output(2), promote(left, right),
      ScalarType::boolean,
      {Comparison<std::int64_t>::apply, Comparison<float>::apply, Comparison<double>::apply});
}

std::int64_t never(std::int64_t /*value*/) {
  return 0;
}
template <typename Float>
Float is_nan(Float value) {
  return std::isnan(value) ? Float{1} : Float{0};
}
template <typename Float>
Float is_infinite(Float value) {
  return std::isinf(value) ? Float{1} : Float{0};
}

Status classify(KernelContext& context, Span<Value* const> values, const UnaryOperations& operations) {
  Arguments arguments(context, values, 2);
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(1);
  arguments.expect_dtype(output, ScalarType::boolean, "the output");
  return compute_unary(arguments, input, output, input.dtype, ScalarType::boolean, operations);
}

}  // namespace

Status eq_out(KernelContext& context, Span<Value* const> values) {
  return compare<Equal>(context, values);
}

Status ne_out(KernelContext& context, Span<Value* const> values) {
  return compare<NotEqual>(context, values);
}

Status lt_out(KernelContext& context, Span<Value* const> values) {
  return compare<Less>(context, values);
}

Status le_out(KernelContext& context, Span<Value* const> values) {
  return compare<LessEqual>(context, values);
}

Status gt_out(KernelContext& context, Span<Value* const> values) {
  return compare<Greater>(context, values);
}

Status ge_out(KernelContext& context, Span<Value* const> values) {
  return compare<GreaterEqual>(context, values);
}

Status isnan_out(KernelContext& context, Span<Value* const> values) {
  return classify(context, values, {never, is_nan<float>, is_nan<double>});
}

Status isinf_out(KernelContext& context, Span<Value* const> values) {
  return classify(context, values, {never, is_infinite<float>, is_infinite<double>});
}

}  // namespace ethosu_sdk::kernels
