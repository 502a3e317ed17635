// aten::mean over some dimensions.
#include <cstddef>
#include <cstdint>

#include "kernels/dispatch.hpp"
#include "kernels/elements.hpp"
#include "kernels/kernels.hpp"
#include "kernels/walk.hpp"

namespace ethosu_sdk::kernels {
namespace {

// Which dimensions of a tensor go, and which stay.
struct Reduction {
  bool reduced[max_rank] = {};
  std::int32_t kept_sizes[max_rank] = {};     // 1 where reduced
  std::int32_t reduced_sizes[max_rank] = {};  // 1 where kept
};

// No dimensions means all of them.
Reduction reduction_over(Arguments& arguments, const std::int64_t* dims, std::size_t count,
                         const Tensor& input) {
  Reduction reduction;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t dim = arguments.checked_dim(dims[i], input.rank);
    if (reduction.reduced[dim]) {
      arguments.fail(Status::invalid_argument, "dimension ", dim, " twice");
    }
    reduction.reduced[dim] = true;
  }
  for (std::size_t i = 0; i < input.rank; ++i) {
    const bool reduced = count == 0 || reduction.reduced[i];
    reduction.reduced[i] = reduced;
    reduction.kept_sizes[i] = reduced ? 1 : input.sizes[i];
    reduction.reduced_sizes[i] = reduced ? input.sizes[i] : 1;
  }
  return reduction;
}

void resize_to_kept(Arguments& arguments, const Tensor& input, const Reduction& reduction, bool keep_dims,
                    Tensor& output) {
  std::int32_t sizes[max_rank] = {};
  std::size_t rank = 0;
  for (std::size_t i = 0; i < input.rank; ++i) {
    if (keep_dims || !reduction.reduced[i]) {
      sizes[rank++] = reduction.kept_sizes[i];
    }
  }
  arguments.resize(output, sizes, rank);
}

// The output's strides by the input's dimensions: 0 for those that are reduced.
Strides strides_by_input(const Tensor& input, const Reduction& reduction, bool keep_dims,
                         const Tensor& output) {
  const Strides own = strides_of(output);
  Strides strides;
  std::size_t dim = 0;
  for (std::size_t i = 0; i < input.rank; ++i) {
    if (!reduction.reduced[i]) {
      strides.of[i] = own.of[dim];
    }
    dim += keep_dims || !reduction.reduced[i] ? 1 : 0;
  }
  return strides;
}

Status mean(Arguments& arguments, const Tensor& input, const Reduction& reduction, bool keep_dims,
            Tensor& output) {
  arguments.expect_contiguous(output, "the output");
  if (arguments.ok()) {
    resize_to_kept(arguments, input, reduction, keep_dims, output);
  }
  if (!arguments.ok()) {
    return arguments.status();
  }
  std::size_t count = 1;
  for (std::size_t i = 0; i < input.rank; ++i) {
    count *= static_cast<std::size_t>(reduction.reduced_sizes[i]);
  }
  const Strides from = strides_of(input);
  const Strides kept[] = {from, strides_by_input(input, reduction, keep_dims, output)};
  const Strides inner[] = {from};
  const bool supported = for_float(output.dtype, [&](auto type) {
    using Float = type_of<decltype(type)>;
    const auto load = load_of<Float>(input.dtype);
    if (load == nullptr) {
      return false;
    }
    walk(reduction.kept_sizes, input.rank, kept, [&](const std::size_t(&at)[2]) {
      Float sum = 0;
      walk(reduction.reduced_sizes, input.rank, inner,
           [&](const std::size_t(&inside)[1]) { sum += load(input.data, at[0] + inside[0]); });
      output.as<Float>()[at[1]] = sum / static_cast<Float>(count);
    });
    return true;
  });
  return supported ? arguments.status() : arguments.unsupported_dtype(input);
}

}  // namespace

Status mean_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, dim, keepdim, dtype, out
  const Tensor& input = arguments.tensor(0);
  std::int64_t dims[max_rank];
  const std::size_t count = arguments.is_none(1) ? 0 : arguments.integers(1, dims, max_rank);
  const bool keep_dims = arguments.boolean(2);
  Tensor& output = arguments.output(4);
  arguments.expect_dtype(output, arguments.scalar_type_or(3, input.dtype), "the output");
  return mean(arguments, input, reduction_over(arguments, dims, count, input), keep_dims, output);
}

Status mean_dtype_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);  // self, dtype, out: over all dimensions
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(output, arguments.scalar_type_or(1, input.dtype), "the output");
  return mean(arguments, input, reduction_over(arguments, nullptr, 0, input), false, output);
}

}  // namespace ethosu_sdk::kernels
