// aten::addmm and mm in float, each sum in the order of its index, as ExecuTorch's portable kernels.
#include <cstddef>

#include "kernels/dispatch.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/kernels.hpp"

namespace ethosu_sdk::kernels {
namespace {

// left [rows, depth] times right [depth, columns], of which each may be transposed in memory.
struct Product {
  std::size_t rows;
  std::size_t depth;
  std::size_t columns;
  Strides left;
  Strides right;
};

template <typename Float>
Float dot(const Float* left, std::size_t left_stride, const Float* right, std::size_t right_stride,
          std::size_t count) {
  Float sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += left[i * left_stride] * right[i * right_stride];
  }
  return sum;
}

// Calls `finish(sum, row, column)` for every element of the product.
template <typename Float, typename Finish>
void multiply(const Tensor& left, const Tensor& right, const Product& product, Finish&& finish) {
  for (std::size_t row = 0; row < product.rows; ++row) {
    for (std::size_t column = 0; column < product.columns; ++column) {
      finish(dot(left.as<const Float>() + row * product.left.of[0], product.left.of[1],
                 right.as<const Float>() + column * product.right.of[1], product.right.of[0], product.depth),
             row, column);
    }
  }
}

// Checks two matrices and gives `output` the product's shape.
Product matrix_product(Arguments& arguments, const Tensor& left, const Tensor& right, Tensor& output) {
  arguments.expect_dtype(right, left.dtype, "the second matrix");
  arguments.expect_dtype(output, left.dtype, "the output");
  Product product{};
  if (!arguments.ok()) {
    return product;
  }
  if (left.rank != 2 || right.rank != 2 || left.sizes[1] != right.sizes[0]) {
    arguments.fail(Status::shape_mismatch, "matrices that cannot be multiplied");
    return product;
  }
  const std::int32_t sizes[] = {left.sizes[0], right.sizes[1]};
  arguments.resize(output, sizes, 2);
  product = {static_cast<std::size_t>(sizes[0]), static_cast<std::size_t>(left.sizes[1]),
             static_cast<std::size_t>(sizes[1]), strides_of(left), strides_of(right)};
  return product;
}

}  // namespace

Status addmm_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 6);  // self, mat1, mat2, beta, alpha, out
  const Tensor& addend = arguments.tensor(0);
  const Tensor& left = arguments.tensor(1);
  const Tensor& right = arguments.tensor(2);
  const Scalar beta = arguments.scalar(3);
  const Scalar alpha = arguments.scalar(4);
  Tensor& output = arguments.output(5);
  arguments.expect_dtype(addend, left.dtype, "the addend");
  const Product product = matrix_product(arguments, left, right, output);
  if (!arguments.ok()) {
    return arguments.status();
  }
  for (std::size_t i = 0; i < addend.rank; ++i) {
    const std::size_t from_end = addend.rank - i;
    if (from_end > 2 || (addend.sizes[i] != 1 && addend.sizes[i] != output.sizes[2 - from_end])) {
      return arguments.fail(Status::shape_mismatch, "size ", i, " of the addend is ", addend.sizes[i]);
    }
  }
  const Strides addend_strides = broadcast_strides(addend, 2);
  const Strides to = strides_of(output);
  const bool supported = for_float(left.dtype, [&](auto type) {
    using Float = type_of<decltype(type)>;
    const auto scale = scalar_as<Float>(alpha);
    const auto addend_scale = scalar_as<Float>(beta);
    multiply<Float>(left, right, product, [&](Float sum, std::size_t row, std::size_t column) {
      const Float added =
          addend.as<const Float>()[row * addend_strides.of[0] + column * addend_strides.of[1]];
      output.as<Float>()[row * to.of[0] + column * to.of[1]] = sum * scale + added * addend_scale;
    });
  });
  return supported ? arguments.status() : arguments.unsupported_dtype(left);
}

Status mm_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& left = arguments.tensor(0);
  const Tensor& right = arguments.tensor(1);
  Tensor& output = arguments.output(2);
  const Product product = matrix_product(arguments, left, right, output);
  if (!arguments.ok()) {
    return arguments.status();
  }
  const Strides to = strides_of(output);
  const bool supported = for_float(left.dtype, [&](auto type) {
    using Float = type_of<decltype(type)>;
    multiply<Float>(left, right, product, [&](Float sum, std::size_t row, std::size_t column) {
      output.as<Float>()[row * to.of[0] + column * to.of[1]] = sum;
    });
  });
  return supported ? arguments.status() : arguments.unsupported_dtype(left);
}

}  // namespace ethosu_sdk::kernels
