// Operators that choose among elements: aten::maximum, minimum, clamp with tensors, where and masked_fill.
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/operations.hpp"

namespace ethosu_sdk::kernels {
namespace {

// A NaN on either side wins.
template <typename Compute>
Compute greater_of(Compute left, Compute right) {
  return left != left || left > right ? left : right;
}
template <typename Compute>
Compute lesser_of(Compute left, Compute right) {
  return left != left || left < right ? left : right;
}

template <typename Compute>
using Ternary = Compute (*)(Compute first, Compute second, Compute third);

using TernaryOperations = ForComputeTypes<Ternary>;

// Three tensors, broadcast against each other.
struct Three {
  const Tensor* of[3];
};

template <typename Compute>
Status map_ternary(Arguments& arguments, const Three& inputs, Tensor& output, Ternary<Compute> operation) {
  Load<Compute> load[3];
  View views[4];
  const auto store = store_of<Compute>(output.dtype);
  for (std::size_t i = 0; i < 3; ++i) {
    load[i] = load_of<Compute>(inputs.of[i]->dtype);
    if (load[i] == nullptr || store == nullptr) {
      return arguments.unsupported_dtype(*inputs.of[i]);
    }
    views[i] = broadcast_view(*inputs.of[i], output.sizes, output.rank);
  }
  views[3] = view_of(output);
  walk({&views[0], &views[1], &views[2], &views[3]}, [&](const std::size_t(&at)[4]) {
    store(output.data, at[3],
          operation(load[0](inputs.of[0]->data, at[0]), load[1](inputs.of[1]->data, at[1]),
                    load[2](inputs.of[2]->data, at[2])));
  });
  return arguments.status();
}

Status compute_ternary(Arguments& arguments, const Three& inputs, Tensor& output, ScalarType common,
                       const TernaryOperations& operations) {
  if (arguments.ok()) {
    check_result_dtype(arguments, common, output);
  }
  if (!arguments.ok() || resize_to_broadcast(arguments, {inputs.of, 3}, output) != Status::ok) {
    return arguments.status();
  }
  return with_compute_type(common, [&](auto type) {
    return map_ternary(arguments, inputs, output, operations.get<type_of<decltype(type)>>());
  });
}

// A NaN among the bounds wins too.
template <typename Compute>
Compute between(Compute value, Compute minimum, Compute maximum) {
  return lesser_of(greater_of(value, minimum), maximum);
}

template <typename Compute>
Compute chosen(Compute condition, Compute yes, Compute no) {
  return condition != Compute{0} ? yes : no;
}
constexpr TernaryOperations choice = {chosen<std::int64_t>, chosen<float>, chosen<double>};

void expect_condition(Arguments& arguments, const Tensor& condition) {
  if (arguments.ok() && condition.dtype != ScalarType::boolean && condition.dtype != ScalarType::uint8) {
    arguments.fail(Status::invalid_argument, "the condition is ", scalar_type_name(condition.dtype));
  }
}

}  // namespace

Status maximum_out(KernelContext& context, Span<Value* const> values) {
  return promoted_binary(context, values, {greater_of<std::int64_t>, greater_of<float>, greater_of<double>});
}

Status minimum_out(KernelContext& context, Span<Value* const> values) {
  return promoted_binary(context, values, {lesser_of<std::int64_t>, lesser_of<float>, lesser_of<double>});
}

Status clamp_tensor_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, min, max, out
  const Tensor& input = arguments.tensor(0);
  const Tensor* const minimum = arguments.optional_tensor(1);
  const Tensor* const maximum = arguments.optional_tensor(2);
  Tensor& output = arguments.output(3);
  if (minimum == nullptr && maximum == nullptr) {
    return arguments.fail(Status::invalid_argument, "neither a minimum nor a maximum");
  }
  ScalarType common = input.dtype;
  common = minimum == nullptr ? common : promote(common, minimum->dtype);
  common = maximum == nullptr ? common : promote(common, maximum->dtype);
  if (minimum == nullptr) {
    return compute_binary(arguments, input, *maximum, output, common, common,
                          {lesser_of<std::int64_t>, lesser_of<float>, lesser_of<double>});
  }
  if (maximum == nullptr) {
    return compute_binary(arguments, input, *minimum, output, common, common,
                          {greater_of<std::int64_t>, greater_of<float>, greater_of<double>});
  }
  return compute_ternary(arguments, {{&input, minimum, maximum}}, output, common,
                         {between<std::int64_t>, between<float>, between<double>});
}

Status where_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // condition, self, other, out
  const Tensor& condition = arguments.tensor(0);
  const Tensor& yes = arguments.tensor(1);
  const Tensor& no = arguments.tensor(2);
  expect_condition(arguments, condition);
  return compute_ternary(arguments, {{&condition, &yes, &no}}, arguments.output(3),
                         promote(yes.dtype, no.dtype), choice);
}

Status masked_fill_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, mask, value, out
  const Tensor& input = arguments.tensor(0);
  const Tensor& mask = arguments.tensor(1);
  const Operand number(arguments, 2);
  expect_condition(arguments, mask);
  return compute_ternary(arguments, {{&mask, &number.tensor(), &input}}, arguments.output(3), input.dtype,
                         choice);
}

}  // namespace ethosu_sdk::kernels
