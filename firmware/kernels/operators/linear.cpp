// aten::addmm, mm, bmm and linear in float, each sum in the order of its index, as ExecuTorch's portable
// kernels.
#include <cstddef>

#include "kernels/kernels.hpp"
#include "kernels/support/dispatch.hpp"
#include "kernels/support/elementwise.hpp"

namespace ethosu_sdk::kernels {
namespace {

// left [rows, depth] times right [depth, columns], of which each may be transposed in memory.
struct Product {
  View left;
  View right;
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
  const auto rows = static_cast<std::size_t>(product.left.sizes[0]);
  const auto depth = static_cast<std::size_t>(product.left.sizes[1]);
  const auto columns = static_cast<std::size_t>(product.right.sizes[1]);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      finish(
          dot(left.as<const Float>() + row * product.left.strides[0], product.left.strides[1],
              right.as<const Float>() + column * product.right.strides[1], product.right.strides[0], depth),
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
  product = {view_of(left), view_of(right)};
  arguments.resize(output, sizes, 2);
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
  const View addends = broadcast_view(addend, output.sizes, 2);
  const View to = view_of(output);
  const bool supported = for_float(left.dtype, [&](auto type) {
    using Float = type_of<decltype(type)>;
    const auto scale = scalar_as<Float>(alpha);
    const auto addend_scale = scalar_as<Float>(beta);
    multiply<Float>(left, right, product, [&](Float sum, std::size_t row, std::size_t column) {
      const Float added = addend.as<const Float>()[addends.in_plane(row, column)];
      output.as<Float>()[to.in_plane(row, column)] = sum * scale + added * addend_scale;
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
  const View to = view_of(output);
  const bool supported = for_float(left.dtype, [&](auto type) {
    using Float = type_of<decltype(type)>;
    multiply<Float>(left, right, product, [&](Float sum, std::size_t row, std::size_t column) {
      output.as<Float>()[to.in_plane(row, column)] = sum;
    });
  });
  return supported ? arguments.status() : arguments.unsupported_dtype(left);
}

Status bmm_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& left = arguments.tensor(0);
  const Tensor& right = arguments.tensor(1);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(right, left.dtype, "the second matrices");
  arguments.expect_dtype(output, left.dtype, "the output");
  if (!arguments.ok() || left.rank != 3 || right.rank != 3 || left.sizes[0] != right.sizes[0] ||
      left.sizes[2] != right.sizes[1]) {
    return arguments.fail(Status::shape_mismatch, "matrices that cannot be multiplied");
  }
  const std::int32_t sizes[] = {left.sizes[0], left.sizes[1], right.sizes[2]};
  if (arguments.resize(output, sizes, 3) != Status::ok) {
    return arguments.status();
  }
  const View by_left = view_of(left);
  const View by_right = view_of(right);
  const View to = view_of(output);
  const auto depth = static_cast<std::size_t>(left.sizes[2]);
  const bool supported = for_float(left.dtype, [&](auto type) {
    using Float = type_of<decltype(type)>;
    walk_indices(sizes, 3, [&](const std::int32_t* at) {
      const auto image = static_cast<std::size_t>(at[0]);
      const Float* const row = left.as<const Float>() + image * by_left.strides[0] +
                               static_cast<std::size_t>(at[1]) * by_left.strides[1];
      const Float* const column = right.as<const Float>() + image * by_right.strides[0] +
                                  static_cast<std::size_t>(at[2]) * by_right.strides[2];
      output.as<Float>()[to.at(at)] = dot(row, by_left.strides[2], column, by_right.strides[1], depth);
    });
  });
  return supported ? arguments.status() : arguments.unsupported_dtype(left);
}

Status linear_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // input, weight, bias, out
  const Tensor& input = arguments.tensor(0);
  const Tensor& weight = arguments.tensor(1);
  const Tensor* const bias = arguments.optional_tensor(2);
  Tensor& output = arguments.output(3);
  arguments.expect_dtype(weight, input.dtype, "the weights");
  arguments.expect_dtype(output, input.dtype, "the output");
  arguments.expect_contiguous(input, "the input");
  arguments.expect_contiguous(output, "the output");
  if (!arguments.ok() || weight.rank != 2 || input.rank == 0 ||
      input.sizes[input.rank - 1] != weight.sizes[1]) {
    return arguments.fail(Status::shape_mismatch, "weights that do not fit the input");
  }
  if (bias != nullptr) {
    arguments.expect_dtype(*bias, input.dtype, "the bias");
    if (arguments.ok() && (bias->rank != 1 || bias->sizes[0] != weight.sizes[0])) {
      arguments.fail(Status::shape_mismatch, "the bias does not fit the output features");
    }
  }
  std::int32_t sizes[max_rank] = {};
  for (std::size_t i = 0; i < input.rank; ++i) {
    sizes[i] = i + 1u == input.rank ? weight.sizes[0] : input.sizes[i];
  }
  if (arguments.resize(output, sizes, input.rank) != Status::ok) {
    return arguments.status();
  }
  const View by_weight = view_of(weight);
  const auto depth = static_cast<std::size_t>(weight.sizes[1]);
  const auto features = static_cast<std::size_t>(weight.sizes[0]);
  const std::size_t count = output.element_count();
  const bool supported = for_float(input.dtype, [&](auto type) {
    using Float = type_of<decltype(type)>;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t feature = i % features;
      const Float sum =
          dot(input.as<const Float>() + i / features * depth, 1,
              weight.as<const Float>() + feature * by_weight.strides[0], by_weight.strides[1], depth);
      output.as<Float>()[i] = bias == nullptr ? sum : sum + bias->as<const Float>()[feature];
    }
  });
  return supported ? arguments.status() : arguments.unsupported_dtype(input);
}

}  // namespace ethosu_sdk::kernels
