// Kernels called with arguments that no program should have: each must be refused, and no byte beside the
// output touched (which the sanitizers watch).
#include "kernels/support/arguments.hpp"

#include <cstring>
#include <vector>

#include "kernels/kernels.hpp"
#include "tests/support/check.hpp"
#include "tests/support/values.hpp"

namespace {

using namespace ethosu_sdk;

// A tensor of its own memory.
struct Owned : TensorValue {
  explicit Owned(std::vector<std::int32_t> shape, ScalarType dtype = ScalarType::float32)
      : TensorValue(std::move(shape), dtype, nullptr), memory(tensor.byte_count() + 8) {
    tensor.data = memory.data();
  }

  std::vector<std::uint8_t> memory;
};

Value list(ValueKind kind, const std::vector<Value*>& items) {
  Value value;
  value.kind = kind;
  value.items = items.data();
  value.item_count = static_cast<std::uint32_t>(items.size());
  return value;
}

void test_softmax() {
  Owned input({2, 3});
  Owned output({2, 3});
  Owned other_shape({3, 2});
  Owned other_dtype({2, 3}, ScalarType::float64);
  Owned integers({2, 3}, ScalarType::int32);
  Value dim = integer(-1);
  Value far = integer(2);
  Value least = integer(INT64_MIN);
  Value no = boolean(false);
  Value yes = boolean(true);
  Value none;
  const auto softmax = [](std::vector<Value*> arguments) {
    return call(kernels::softmax_out, std::move(arguments));
  };
  CHECK(softmax({&input.value, &dim, &no, &output.value}) == Status::ok);
  CHECK(softmax({&input.value, &dim, &no, &output.value, &output.value}) == Status::ok);
  CHECK(softmax({}) == Status::invalid_argument);
  CHECK(softmax({&input.value, &dim, &no}) == Status::invalid_argument);
  CHECK(softmax({&none, &dim, &no, &output.value}) == Status::invalid_argument);
  CHECK(softmax({&input.value, &no, &no, &output.value}) == Status::invalid_argument);
  CHECK(softmax({&input.value, &far, &no, &output.value}) == Status::invalid_argument);
  CHECK(softmax({&input.value, &least, &no, &output.value}) == Status::invalid_argument);
  CHECK(softmax({&input.value, &dim, &yes, &output.value}) == Status::unsupported_argument);
  CHECK(softmax({&input.value, &dim, &no, &other_shape.value}) == Status::shape_mismatch);
  CHECK(softmax({&input.value, &dim, &no, &other_dtype.value}) == Status::invalid_argument);
  CHECK(softmax({&integers.value, &dim, &no, &integers.value}) == Status::unsupported_argument);
  output.tensor.constant = true;
  CHECK(softmax({&input.value, &dim, &no, &output.value}) == Status::invalid_argument);
}

void test_resize() {
  Owned input({2, 3});
  Owned output({4, 3});
  output.tensor.resizable = true;
  CHECK(call(kernels::relu_out, {&input.value, &output.value}) == Status::ok);
  CHECK(output.sizes[0] == 2);
  Owned larger({5, 3});
  CHECK(call(kernels::relu_out, {&larger.value, &output.value}) == Status::shape_mismatch);
  Owned rank({6});
  CHECK(call(kernels::relu_out, {&rank.value, &output.value}) == Status::shape_mismatch);
}

void test_quantize() {
  Owned input({4});
  Owned output({4}, ScalarType::int8);
  Owned wide({4}, ScalarType::int64);
  Value scale = real(0.5);
  Value zero = integer(0);
  Value low = integer(-128);
  Value high = integer(127);
  Value too_high = integer(128);
  Value int8 = integer(1);
  Value int64 = integer(4);
  Value nonsense = integer(1000);
  const auto quantize = [](std::vector<Value*> arguments) {
    return call(kernels::quantize_per_tensor_out, std::move(arguments));
  };
  CHECK(quantize({&input.value, &scale, &zero, &low, &high, &int8, &output.value}) == Status::ok);
  CHECK(quantize({&input.value, &scale, &zero, &low, &too_high, &int8, &output.value}) ==
        Status::invalid_argument);
  CHECK(quantize({&input.value, &scale, &zero, &high, &low, &int8, &output.value}) ==
        Status::invalid_argument);
  CHECK(quantize({&input.value, &scale, &zero, &low, &high, &int64, &output.value}) ==
        Status::invalid_argument);
  CHECK(quantize({&input.value, &scale, &zero, &low, &high, &nonsense, &output.value}) ==
        Status::unsupported_argument);
  CHECK(quantize({&input.value, &scale, &zero, &low, &high, &int64, &wide.value}) ==
        Status::unsupported_argument);
  Value far_zero = integer(1LL << 40);
  CHECK(quantize({&input.value, &scale, &far_zero, &low, &high, &int8, &output.value}) ==
        Status::invalid_argument);
}

void test_pooling() {
  Owned input({1, 4, 4});
  Owned output({1, 2, 2});
  Value two = integer(2);
  Value zero = integer(0);
  Value huge = integer(INT64_MAX);
  Value no = boolean(false);
  Value none;
  const std::vector<Value*> pair = {&two, &two};
  const std::vector<Value*> triple = {&two, &two, &two};
  const std::vector<Value*> zeros = {&zero, &zero};
  const std::vector<Value*> huges = {&huge, &huge};
  const std::vector<Value*> nones = {&none};
  Value twos = list(ValueKind::integer_list, pair);
  Value threes = list(ValueKind::integer_list, triple);
  Value nothing = list(ValueKind::integer_list, zeros);
  Value far = list(ValueKind::integer_list, huges);
  Value no_integers = list(ValueKind::integer_list, nones);
  const auto pool = [&](Value& kernel, Value& stride, Value& padding, Value& divisor) {
    return call(kernels::avg_pool2d_out,
                {&input.value, &kernel, &stride, &padding, &no, &no, &divisor, &output.value});
  };
  CHECK(pool(twos, twos, nothing, none) == Status::ok);
  CHECK(pool(threes, twos, nothing, none) == Status::invalid_argument);
  CHECK(pool(twos, nothing, nothing, none) == Status::invalid_argument);
  CHECK(pool(twos, twos, twos, none) == Status::invalid_argument);
  CHECK(pool(twos, far, nothing, none) == Status::invalid_argument);
  CHECK(pool(far, twos, nothing, none) == Status::invalid_argument);
  CHECK(pool(twos, twos, nothing, zero) == Status::invalid_argument);
  CHECK(pool(no_integers, twos, nothing, none) == Status::invalid_argument);
  CHECK(pool(twos, none, nothing, none) == Status::invalid_argument);
}

void test_movement() {
  Owned input({2, 3});
  Owned output({3, 2});
  Value zero = integer(0);
  Value one = integer(1);
  Value minus = integer(-1);
  Value large = integer(1LL << 33);
  const std::vector<Value*> swapped = {&one, &zero};
  const std::vector<Value*> twice = {&one, &one};
  const std::vector<Value*> inferred_twice = {&minus, &minus};
  const std::vector<Value*> larges = {&large, &one};
  Value order = list(ValueKind::integer_list, swapped);
  Value repeated = list(ValueKind::integer_list, twice);
  Value inferred = list(ValueKind::integer_list, inferred_twice);
  Value far = list(ValueKind::integer_list, larges);
  CHECK(call(kernels::permute_copy_out, {&input.value, &order, &output.value}) == Status::ok);
  CHECK(call(kernels::permute_copy_out, {&input.value, &repeated, &output.value}) ==
        Status::invalid_argument);
  CHECK(call(kernels::permute_copy_out, {&input.value, &order, &input.value}) == Status::shape_mismatch);
  CHECK(call(kernels::view_copy_out, {&input.value, &inferred, &output.value}) == Status::invalid_argument);
  CHECK(call(kernels::view_copy_out, {&input.value, &far, &output.value}) == Status::invalid_argument);
  CHECK(call(kernels::view_copy_out, {&input.value, &repeated, &output.value}) == Status::shape_mismatch);
  const std::vector<Value*> tensors = {&input.value, &zero};
  Value mixed = list(ValueKind::tensor_list, tensors);
  CHECK(call(kernels::cat_out, {&mixed, &zero, &output.value}) == Status::invalid_argument);
  const std::vector<Value*> unlike = {&input.value, &output.value};
  Value shapes = list(ValueKind::tensor_list, unlike);
  Owned joined({5, 3});
  CHECK(call(kernels::cat_out, {&shapes, &zero, &joined.value}) == Status::shape_mismatch);
  Value step = integer(0);
  CHECK(call(kernels::slice_copy_out, {&input.value, &zero, &zero, &one, &step, &output.value}) ==
        Status::invalid_argument);
  CHECK(call(kernels::select_copy_out, {&input.value, &zero, &large, &output.value}) ==
        Status::invalid_argument);
}

void test_arithmetic() {
  Owned left({2, 3});
  Owned right({4, 3});
  Owned output({2, 3});
  Owned integers({2, 3}, ScalarType::int32);
  Owned half({2, 3}, ScalarType::float16);
  Value one = integer(1);
  Value fraction = real(0.5);
  CHECK(call(kernels::add_out, {&left.value, &left.value, &one, &output.value}) == Status::ok);
  CHECK(call(kernels::add_out, {&left.value, &right.value, &one, &output.value}) == Status::shape_mismatch);
  CHECK(call(kernels::add_out, {&left.value, &left.value, &one, &integers.value}) ==
        Status::invalid_argument);
  CHECK(call(kernels::add_out, {&integers.value, &integers.value, &fraction, &integers.value}) ==
        Status::invalid_argument);
  CHECK(call(kernels::add_out, {&half.value, &half.value, &one, &half.value}) ==
        Status::unsupported_argument);
}

void test_convolution() {
  Owned input({1, 2, 4, 4});
  Owned weights({3, 2, 2, 2});
  Owned bias({4});
  Owned output({1, 3, 3, 3});
  Value none;
  Value no = boolean(false);
  Value zero = integer(0);
  Value one = integer(1);
  Value two = integer(2);
  const std::vector<Value*> ones = {&one, &one};
  const std::vector<Value*> zeros = {&zero, &zero};
  Value steps = list(ValueKind::integer_list, ones);
  Value nothing = list(ValueKind::integer_list, zeros);
  const auto convolve = [&](Value& biases, Value& stride, Value& groups) {
    return call(kernels::convolution_out, {&input.value, &weights.value, &biases, &stride, &nothing, &steps,
                                           &no, &nothing, &groups, &output.value});
  };
  CHECK(convolve(none, steps, one) == Status::ok);
  CHECK(convolve(bias.value, steps, one) == Status::shape_mismatch);
  CHECK(convolve(none, nothing, one) == Status::invalid_argument);
  CHECK(convolve(none, steps, zero) == Status::shape_mismatch);
  CHECK(convolve(none, steps, two) == Status::shape_mismatch);
}

void test_state_and_empty() {
  Owned whole({3, 2});
  Owned row({1, 2});
  Owned index({1}, ScalarType::int64);
  row.tensor.as<float>()[0] = 5;
  row.tensor.as<float>()[1] = 6;
  index.tensor.as<std::int64_t>()[0] = -1;
  const std::vector<Value*> items = {&index.value};
  Value indices = list(ValueKind::optional_tensor_list, items);
  Value no = boolean(false);
  const auto put = [&] {
    return call(kernels::index_put_in_place, {&whole.value, &indices, &row.value, &no});
  };
  CHECK(put() == Status::ok);
  CHECK(whole.tensor.as<float>()[4] == 5 && whole.tensor.as<float>()[5] == 6 &&
        whole.tensor.as<float>()[0] == 0);
  index.tensor.as<std::int64_t>()[0] = 3;
  CHECK(put() == Status::invalid_argument);
  Value three = integer(3);
  Value two = integer(2);
  Value none;
  const std::vector<Value*> shape = {&three, &two};
  Value sizes = list(ValueKind::integer_list, shape);
  CHECK(call(kernels::empty_out, {&sizes, &none, &whole.value}) == Status::ok);
  CHECK(whole.tensor.as<float>()[5] == 0);
  CHECK(call(kernels::empty_out, {&sizes, &none, &row.value}) == Status::shape_mismatch);
}

// Programs have either order for a tensor with one channel or one pixel.
void test_layouts() {
  static constexpr std::uint8_t channels_last[] = {0, 2, 3, 1};
  struct Shape {
    std::vector<std::int32_t> sizes;
    bool alike;
  };
  const Shape shapes[] = {{{2, 1, 4, 5}, true}, {{2, 3, 1, 1}, true}, {{1, 3, 1, 2}, false}};
  for (const Shape& shape : shapes) {
    Owned planes(shape.sizes);
    Owned pixels(shape.sizes);
    Owned larger({2, 3, 2, 2});
    pixels.tensor.dim_order = channels_last;
    CHECK(planes.tensor.is_contiguous());
    CHECK(pixels.tensor.is_contiguous() == shape.alike);
    const auto same = [](const Tensor& left, const Tensor& right) {
      ErrorText text;
      KernelContext context(text);
      return kernels::Arguments(context, {}, 0).expect_same_dim_order(left, right) == Status::ok;
    };
    CHECK(same(planes.tensor, pixels.tensor) == shape.alike);
    CHECK(same(pixels.tensor, planes.tensor) == shape.alike);
    CHECK(same(planes.tensor, larger.tensor));
    CHECK(!same(pixels.tensor, larger.tensor));
  }
}

void test_error_text() {
  ErrorText text;
  text << "a" << -9223372036854775807 - 1 << " " << 18446744073709551615ull << "\x01\xff";
  CHECK(std::strcmp(text.c_str(), "a-9223372036854775808 18446744073709551615??") == 0);
  for (int i = 0; i < 100; ++i) {
    text << "0123456789";
  }
  CHECK(std::strlen(text.c_str()) == ErrorText::capacity - 1);
}

}  // namespace

// An output that is an input too: a kernel has looked at its sizes when it gives it others.
void test_outputs_that_are_inputs() {
  Owned both({4, 3});
  both.tensor.resizable = true;
  both.sizes[0] = 2;
  Owned other({1, 3});
  const std::vector<Value*> items = {&both.value, &other.value};
  Value joined = list(ValueKind::tensor_list, items);
  Value zero = integer(0);
  CHECK(call(kernels::cat_out, {&joined, &zero, &both.value}) == Status::invalid_argument);
  CHECK(both.sizes[0] == 2);
  Owned product({2, 4, 4});
  product.tensor.resizable = true;
  product.sizes[2] = 3;
  Owned right({2, 3, 4});
  CHECK(call(kernels::bmm_out, {&product.value, &right.value, &product.value}) == Status::invalid_argument);
  Owned same({2, 3});
  same.tensor.resizable = true;
  CHECK(call(kernels::relu_out, {&same.value, &same.value, &same.value}) == Status::ok);
}

int main() {
  test_outputs_that_are_inputs();
  test_softmax();
  test_resize();
  test_quantize();
  test_pooling();
  test_movement();
  test_arithmetic();
  test_convolution();
  test_state_and_empty();
  test_layouts();
  test_error_text();
  return host::failed_checks == 0 ? 0 : 1;
}
