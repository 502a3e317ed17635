// cortex_m::quantized_linear and quantized_batch_matmul: int8 with CMSIS-NN's arithmetic.
#include <algorithm>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/int8_vectors.hpp"

namespace ethosu_sdk::kernels {
namespace {

struct Offsets {
  std::int32_t left;
  std::int32_t right;
};

constexpr std::size_t columns_at_once = 64;

// A matrix and another that is transposed: each result is of a row of both.
struct Product {
  const std::int8_t* left;
  const std::int8_t* right;
  std::int8_t* results;
  std::size_t rows;
  std::size_t columns;
  std::size_t inner;
  Offsets offsets;
  const std::int32_t* addends;  // of each column; nullptr: none
  bool has_sums;                // the addends include the left offset's share
  Requantization scale;
  OutputRange range;
};

// What each row of a column's results begins with.
std::int32_t start_of(const Product& product, std::size_t column) {
  const std::int32_t addend = product.addends == nullptr ? 0 : product.addends[column];
  if (product.has_sums || product.offsets.left == 0) {
    return addend;
  }
  const std::int32_t share =
      wrapping_product(static_cast<std::int32_t>(product.inner), product.offsets.right);
  const std::int32_t sum = wrapping_sum(sum_of(product.right + column * product.inner, product.inner), share);
  return wrapping_sum(addend, wrapping_product(product.offsets.left, sum));
}

// The columns from `first` on: Σ (left + offset) × (right + offset) + addend.
void multiply_columns(const Product& product, std::size_t first, std::size_t count) {
  std::int32_t starts[columns_at_once];
  for (std::size_t k = 0; k < count; ++k) {
    starts[k] = start_of(product, first + k);
  }
  for (std::size_t row = 0; row < product.rows; ++row) {
    const std::int8_t* const from = product.left + row * product.inner;
    std::int32_t sums[columns_at_once];
    dot_products(starts, sums, from, product.right + first * product.inner, product.inner, product.inner,
                 count);
    if (product.offsets.right != 0) {
      const std::int32_t share = wrapping_product(product.offsets.right, sum_of(from, product.inner));
      for (std::size_t k = 0; k < count; ++k) {
        sums[k] = wrapping_sum(sums[k], share);
      }
    }
    requantize_all(sums, product.scale, product.range, product.results + row * product.columns + first,
                   count);
  }
}

void multiply(const Product& product) {
  for (std::size_t first = 0; first < product.columns; first += columns_at_once) {
    multiply_columns(product, first, std::min(columns_at_once, product.columns - first));
  }
}

void expect_matrix(Arguments& arguments, const Tensor& tensor, const char* what) {
  arguments.expect_dtype(tensor, ScalarType::int8, what);
  arguments.expect_contiguous(tensor, what);
}

}  // namespace

Status cortex_m_quantized_linear_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 12);
  const Tensor& input = arguments.tensor(0);
  const Tensor& weight = arguments.tensor(1);
  const Tensor* const bias = arguments.optional_tensor(2);
  const Tensor* const kernel_sum = arguments.optional_tensor(3);
  const Offsets offsets = {read_int32(arguments, 4), read_int32(arguments, 5)};
  std::int64_t multiplier = 0;
  std::int64_t shift = 0;
  if (arguments.integers(7, &multiplier, 1) != 1 || arguments.integers(8, &shift, 1) != 1) {
    arguments.fail(Status::invalid_argument, "not one multiplier and shift");
  }
  const Requantization scale = checked_requantization(arguments, multiplier, shift);
  const OutputRange range = read_output_range(arguments, 6, 10, 9);
  Tensor& output = arguments.output(11);
  expect_matrix(arguments, input, "the input");
  expect_matrix(arguments, weight, "the weight");
  expect_matrix(arguments, output, "the output");
  if (arguments.ok() &&
      (input.rank == 0 || weight.rank != 2 || weight.sizes[1] != input.sizes[input.rank - 1])) {
    arguments.fail(Status::shape_mismatch, "a weight of rank ", weight.rank, " for an input of ", input.rank);
  }
  if (!arguments.ok()) {
    return arguments.status();
  }
  const auto outputs = static_cast<std::size_t>(weight.sizes[0]);
  const auto inputs = static_cast<std::size_t>(weight.sizes[1]);
  // With sums of the weights, which include it, the bias is not used.
  const Tensor* const addend = kernel_sum != nullptr ? kernel_sum : bias;
  const std::int32_t* const addends = addend == nullptr ? nullptr : read_int32s(arguments, *addend, outputs);
  std::int32_t sizes[max_rank];
  std::copy_n(input.sizes, input.rank, sizes);
  sizes[input.rank - 1] = weight.sizes[0];
  if (arguments.resize(output, sizes, input.rank) != Status::ok || outputs == 0) {
    return arguments.status();
  }
  multiply({input.as<const std::int8_t>(), weight.as<const std::int8_t>(), output.as<std::int8_t>(),
            output.element_count() / outputs, outputs, inputs, offsets, addends, kernel_sum != nullptr, scale,
            range});
  return arguments.status();
}

Status cortex_m_quantized_batch_matmul_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 9);
  const Tensor& left = arguments.tensor(0);
  const Tensor& right = arguments.tensor(2);
  // The dialect calls these zero points. They are added.
  const Offsets offsets = {read_int32(arguments, 1), read_int32(arguments, 3)};
  OutputRange range;
  range.offset = read_int32(arguments, 4);
  const Requantization scale = read_requantization(arguments, 5);
  Tensor& output = arguments.output(8);
  expect_matrix(arguments, left, "the first operand");
  expect_matrix(arguments, right, "the second operand");
  expect_matrix(arguments, output, "the output");
  if (arguments.ok() && (left.rank != 3 || right.rank != 3 || left.sizes[0] != right.sizes[0] ||
                         left.sizes[2] != right.sizes[2])) {
    arguments.fail(Status::shape_mismatch, "operands of rank ", left.rank, " and ", right.rank);
  }
  if (!arguments.ok()) {
    return arguments.status();
  }
  const std::int32_t sizes[] = {left.sizes[0], left.sizes[1], right.sizes[1]};
  if (arguments.resize(output, sizes, 3) != Status::ok) {
    return arguments.status();
  }
  const auto rows = static_cast<std::size_t>(left.sizes[1]);
  const auto columns = static_cast<std::size_t>(right.sizes[1]);
  const auto inner = static_cast<std::size_t>(left.sizes[2]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(left.sizes[0]); ++i) {
    multiply({left.as<const std::int8_t>() + i * rows * inner,
              right.as<const std::int8_t>() + i * columns * inner,
              output.as<std::int8_t>() + i * rows * columns, rows, columns, inner, offsets, nullptr, false,
              scale, range});
  }
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
