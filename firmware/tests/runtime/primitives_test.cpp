// The operators on the program's own numbers: a table of arguments and results, and what must be refused.
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernels.hpp"
#include "tests/support/check.hpp"
#include "tests/support/values.hpp"

namespace {

using namespace ethosu_sdk;

Value of(std::int64_t number) {
  return integer(number);
}

Value of(double number) {
  return real(number);
}

Value of(bool truth) {
  return boolean(truth);
}

bool same(const Value& left, const Value& right) {
  if (left.kind != right.kind) {
    return false;
  }
  switch (left.kind) {
    case ValueKind::integer:
      return left.integer == right.integer;
    case ValueKind::boolean:
      return left.boolean == right.boolean;
    default:
      return left.real == right.real || (std::isnan(left.real) && std::isnan(right.real));
  }
}

struct Row {
  KernelFn kernel;
  std::vector<Value> arguments;
  Value result;
};

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

const Row rows[] = {
    {kernels::prim_add, {of(INT64_C(2)), of(INT64_C(3))}, of(INT64_C(5))},
    {kernels::prim_add, {of(most), of(INT64_C(1))}, of(least)},
    {kernels::prim_add, {of(INT64_C(2)), of(0.5)}, of(2.5)},
    {kernels::prim_sub, {of(INT64_C(2)), of(INT64_C(3))}, of(INT64_C(-1))},
    {kernels::prim_sub, {of(2.0), of(INT64_C(3))}, of(-1.0)},
    {kernels::prim_mul, {of(INT64_C(-4)), of(INT64_C(3))}, of(INT64_C(-12))},
    {kernels::prim_mul, {of(1.5), of(INT64_C(3))}, of(4.5)},
    {kernels::prim_floordiv, {of(INT64_C(-7)), of(INT64_C(2))}, of(INT64_C(-4))},
    {kernels::prim_floordiv, {of(INT64_C(7)), of(INT64_C(2))}, of(INT64_C(3))},
    {kernels::prim_floordiv, {of(least), of(INT64_C(-1))}, of(least)},
    {kernels::prim_floordiv, {of(-7.0), of(INT64_C(2))}, of(-4.0)},
    {kernels::prim_mod, {of(INT64_C(7)), of(INT64_C(4))}, of(INT64_C(3))},
    {kernels::prim_mod, {of(least), of(INT64_C(-1))}, of(INT64_C(0))},
    {kernels::prim_truediv, {of(INT64_C(7)), of(INT64_C(2))}, of(3.5)},
    {kernels::prim_truediv, {of(INT64_C(1)), of(INT64_C(0))}, of(HUGE_VAL)},
    {kernels::prim_eq, {of(INT64_C(2)), of(2.0)}, of(true)},
    {kernels::prim_eq, {of(nan), of(nan)}, of(false)},
    {kernels::prim_gt, {of(INT64_C(3)), of(INT64_C(2))}, of(true)},
    {kernels::prim_gt, {of(nan), of(INT64_C(2))}, of(false)},
    {kernels::prim_lt, {of(INT64_C(3)), of(INT64_C(2))}, of(false)},
    {kernels::prim_lt, {of(most - 1), of(most)}, of(true)},
    {kernels::prim_ge, {of(2.0), of(INT64_C(2))}, of(true)},
    {kernels::prim_le, {of(INT64_C(3)), of(2.5)}, of(false)},
    {kernels::prim_le, {of(INT64_C(2)), of(nan)}, of(false)},
    {kernels::prim_neg, {of(INT64_C(5))}, of(INT64_C(-5))},
    {kernels::prim_neg, {of(least)}, of(least)},
    {kernels::prim_neg, {of(2.5)}, of(-2.5)},
    {kernels::prim_ceil, {of(2.1)}, of(INT64_C(3))},
    {kernels::prim_round, {of(2.5)}, of(INT64_C(2))},
    {kernels::prim_trunc, {of(-2.9)}, of(INT64_C(-2))},
    {kernels::prim_trunc, {of(nan)}, of(least)},
    {kernels::prim_sym_float, {of(INT64_C(3))}, of(3.0)},
    {kernels::prim_sym_not, {of(true)}, of(false)},
    {kernels::prim_sym_max, {of(INT64_C(3)), of(INT64_C(7))}, of(INT64_C(7))},
    {kernels::prim_sym_min, {of(INT64_C(3)), of(1.5)}, of(1.5)},
};

void test_table() {
  for (const Row& row : rows) {
    std::vector<Value> arguments = row.arguments;
    Value result;
    std::vector<Value*> pointers;
    for (Value& argument : arguments) {
      pointers.push_back(&argument);
    }
    pointers.push_back(&result);
    CHECK(call(row.kernel, pointers) == Status::ok);
    CHECK(same(result, row.result));
    // A number that is a text, and a result that is one.
    Value text;
    text.kind = ValueKind::string;
    text.string = "3";
    pointers[0] = &text;
    CHECK(call(row.kernel, pointers) == Status::invalid_argument);
    pointers[0] = &arguments[0];
    pointers.back() = &text;
    CHECK(call(row.kernel, pointers) == Status::invalid_argument);
  }
  Value seven = of(INT64_C(7));
  Value zero = of(INT64_C(0));
  Value result;
  CHECK(call(kernels::prim_floordiv, {&seven, &zero, &result}) == Status::invalid_argument);
  CHECK(call(kernels::prim_mod, {&seven, &zero, &result}) == Status::invalid_argument);
}

struct FloatTensor : TensorValue {
  FloatTensor(std::vector<std::int32_t> shape, float* data)
      : TensorValue(std::move(shape), ScalarType::float32, data) {}
};

void test_tensors() {
  float data[] = {1, 2, 3, 4, 5, 6};
  FloatTensor input({2, 3}, data);
  Value one = of(INT64_C(1));
  Value far = of(INT64_C(2));
  Value result;
  CHECK(call(kernels::sym_size_int, {&input.value, &one, &result}) == Status::ok);
  CHECK(same(result, of(INT64_C(3))));
  CHECK(call(kernels::sym_size_int, {&input.value, &far, &result}) == Status::invalid_argument);
  CHECK(call(kernels::sym_numel, {&input.value, &result}) == Status::ok);
  CHECK(same(result, of(INT64_C(6))));
  CHECK(call(kernels::local_scalar_dense, {&input.value, &result}) == Status::ok);
  CHECK(same(result, of(1.0)));
  input.sizes[0] = 0;
  CHECK(call(kernels::local_scalar_dense, {&input.value, &result}) == Status::invalid_argument);
}

void test_view() {
  float data[] = {1, 2, 3, 4, 5, 6};
  FloatTensor input({2, 3}, data);
  FloatTensor view({3, 2}, nullptr);
  Value three = of(INT64_C(3));
  Value rest = of(INT64_C(-1));
  std::vector<Value*> items = {&three, &rest};
  Value sizes;
  sizes.kind = ValueKind::integer_list;
  sizes.items = items.data();
  sizes.item_count = 2;
  CHECK(call(kernels::prim_view, {&input.value, &sizes, &view.value}) == Status::ok);
  CHECK(view.tensor.data == data);
  input.tensor.constant = true;
  CHECK(call(kernels::prim_view, {&input.value, &sizes, &view.value}) == Status::unsupported_argument);
  input.tensor.constant = false;
  three = of(INT64_C(4));
  CHECK(call(kernels::prim_view, {&input.value, &sizes, &view.value}) == Status::shape_mismatch);
}

void test_copy_index() {
  float data[6] = {};
  float row_data[] = {7, 8, 9};
  FloatTensor output({2, 3}, data);
  FloatTensor row({3}, row_data);
  Value one = of(INT64_C(1));
  Value far = of(INT64_C(2));
  CHECK(call(kernels::prim_copy_index, {&output.value, &row.value, &one}) == Status::ok);
  CHECK(data[3] == 7 && data[5] == 9 && data[0] == 0);
  CHECK(call(kernels::prim_copy_index, {&output.value, &row.value, &far}) == Status::shape_mismatch);
}

}  // namespace

int main() {
  test_table();
  test_tensors();
  test_view();
  test_copy_index();
  return host::failed_checks == 0 ? 0 : 1;
}
