// Operators along one dimension: aten::argmax, argmin, max.dim, min.dim, topk and cumsum.
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/copy.hpp"
#include "kernels/support/dispatch.hpp"
#include "kernels/support/elementwise.hpp"
#include "kernels/support/reduction.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

// Whether `value` comes before `found` in the order that is looked for. A NaN comes before every number,
// equal ones in the order in which they lie.
template <typename Compute>
bool precedes(Compute value, Compute found, bool greatest) {
  if (found != found) {
    return false;
  }
  return value != value || (greatest ? value > found : value < found);
}

// Position and offset of the extreme of one lane.
struct Found {
  std::int64_t position;
  std::size_t offset;
};

template <typename Compute>
Found find_extreme(Load<Compute> load, const Tensor& input, const Reduction& reduction, std::size_t first,
                   bool greatest) {
  Found found = {0, first};
  Compute value = load(input.data, first);
  std::int64_t position = 0;
  for_each_reduced(reduction, first, [&](std::size_t at) {
    const Compute next = load(input.data, at);
    if (precedes(next, value, greatest)) {
      value = next;
      found = {position, at};
    }
    ++position;
  });
  return found;
}

using Finder = Found (*)(const Tensor&, const Reduction&, std::size_t, bool);

template <typename Compute>
Found find_in(const Tensor& input, const Reduction& reduction, std::size_t first, bool greatest) {
  return find_extreme(load_of<Compute>(input.dtype), input, reduction, first, greatest);
}

// What finds extremes of a dtype; nullptr: nothing does.
Finder finder_for(ScalarType dtype) {
  return with_compute_type(dtype, [dtype](auto type) -> Finder {
    using Compute = type_of<decltype(type)>;
    return load_of<Compute>(dtype) == nullptr ? nullptr : find_in<Compute>;
  });
}

// The same for a reduction to one of its elements. Fails and returns nullptr.
Finder read_finder(Arguments& arguments, const Tensor& input, const Reduction& reduction) {
  if (arguments.ok() && reduction.count == 0) {
    arguments.fail(Status::invalid_argument, "no element to choose from");
  }
  const Finder find = finder_for(input.dtype);
  if (arguments.ok() && find == nullptr) {
    arguments.unsupported_dtype(input);
  }
  return find;
}

Status argument_extreme(KernelContext& context, Span<Value* const> values, bool greatest) {
  Arguments arguments(context, values, 4);  // self, dim, keepdim, out
  const Tensor& input = arguments.tensor(0);
  const Reduction reduction = read_reduction(arguments, input, 1);
  const bool keep_dims = arguments.boolean(2);
  Tensor& output = arguments.output(3);
  arguments.expect_dtype(output, ScalarType::int64, "the output");
  const Finder find = read_finder(arguments, input, reduction);
  const View to = arguments.ok() ? resize_to_kept(arguments, reduction, keep_dims, output) : View{};
  if (arguments.ok()) {
    for_each_result(reduction, to, [&](std::size_t first, std::size_t result) {
      output.as<std::int64_t>()[result] = find(input, reduction, first, greatest).position;
    });
  }
  return arguments.status();
}

Status extreme_along(KernelContext& context, Span<Value* const> values, bool greatest) {
  Arguments arguments(context, values, 5);  // self, dim, keepdim, the values, the indices
  const Tensor& input = arguments.tensor(0);
  const std::int64_t dim = arguments.integer(1);
  const Reduction reduction = reduction_over(arguments, input, &dim, 1);
  const bool keep_dims = arguments.boolean(2);
  Tensor& output = arguments.output(3);
  Tensor& indices = arguments.output(4);
  arguments.expect_dtype(output, input.dtype, "the output");
  arguments.expect_dtype(indices, ScalarType::int64, "the indices");
  const Finder find = read_finder(arguments, input, reduction);
  const View to = arguments.ok() ? resize_to_kept(arguments, reduction, keep_dims, output) : View{};
  const View indices_to = arguments.ok() ? resize_to_kept(arguments, reduction, keep_dims, indices) : View{};
  if (!arguments.ok()) {
    return arguments.status();
  }
  walk({&reduction.results, &to, &indices_to}, [&](const std::size_t(&at)[3]) {
    const Found found = find(input, reduction, at[0], greatest);
    copy_element(input, found.offset, output, at[1]);
    indices.as<std::int64_t>()[at[2]] = found.position;
  });
  return arguments.status();
}

// The elements of one lane that topk takes: each time the first in order that comes after the one before.
template <typename Compute>
void choose_first(const Tensor& input, Tensor& output, Tensor& indices, std::size_t dim, bool greatest) {
  const auto load = load_of<Compute>(input.dtype);
  const auto store = store_of<Compute>(output.dtype);
  const View from = part_of(view_of(input), dim, 0, 1);  // the first of each lane
  const View to = view_of(output);
  const View indices_to = view_of(indices);
  const std::int32_t length = input.rank == 0 ? 1 : input.sizes[dim];
  const std::int32_t wanted = output.rank == 0 ? 1 : output.sizes[dim];
  walk({&from, &to, &indices_to}, [&](const std::size_t(&at)[3]) {
    const auto element = [&](std::int32_t i) {
      return load(input.data, at[0] + static_cast<std::size_t>(i) * from.strides[dim]);
    };
    std::int32_t last = -1;
    for (std::int32_t n = 0; n < wanted; ++n) {
      std::int32_t best = -1;
      for (std::int32_t i = 0; i < length; ++i) {
        const bool is_left = last < 0 || precedes(element(last), element(i), greatest) ||
                             (i > last && !precedes(element(i), element(last), greatest));
        if (is_left && (best < 0 || precedes(element(i), element(best), greatest))) {
          best = i;
        }
      }
      best = best < 0 ? 0 : best;  // nothing is left only when the output overwrites the input
      const auto place = static_cast<std::size_t>(n);
      store(output.data, at[1] + place * to.strides[dim], element(best));
      indices.as<std::int64_t>()[at[2] + place * indices_to.strides[dim]] = best;
      last = best;
    }
  });
}

template <typename Compute>
void sum_along(const Tensor& input, Tensor& output, std::size_t dim, Load<Compute> load) {
  const auto store = store_of<Compute>(output.dtype);
  const View from = part_of(view_of(input), dim, 0, 1);  // the first of each lane
  const View to = view_of(output);
  const std::size_t length = input.rank == 0 ? 1 : static_cast<std::size_t>(input.sizes[dim]);
  walk({&from, &to}, [&](const std::size_t(&at)[2]) {
    Compute sum = 0;
    for (std::size_t i = 0; i < length; ++i) {
      const Compute next = load(input.data, at[0] + i * from.strides[dim]);
      sum = i == 0 ? next : wrapping_sum(sum, next);
      store(output.data, at[1] + i * to.strides[dim], sum);
    }
  });
}

}  // namespace

Status argmax_out(KernelContext& context, Span<Value* const> values) {
  return argument_extreme(context, values, true);
}

Status argmin_out(KernelContext& context, Span<Value* const> values) {
  return argument_extreme(context, values, false);
}

Status max_dim_out(KernelContext& context, Span<Value* const> values) {
  return extreme_along(context, values, true);
}

Status min_dim_out(KernelContext& context, Span<Value* const> values) {
  return extreme_along(context, values, false);
}

Status topk_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 7);  // self, k, dim, largest, sorted, the values, the indices
  const Tensor& input = arguments.tensor(0);
  const std::int64_t wanted = arguments.integer(1);
  const std::size_t dim = arguments.dim(2, input.rank);
  const bool greatest = arguments.boolean(3);
  static_cast<void>(arguments.boolean(4));  // sorted either way
  Tensor& output = arguments.output(5);
  Tensor& indices = arguments.output(6);
  arguments.expect_dtype(output, input.dtype, "the output");
  arguments.expect_dtype(indices, ScalarType::int64, "the indices");
  if (!arguments.ok() || wanted < 0 || wanted > (input.rank == 0 ? 1 : input.sizes[dim])) {
    return arguments.fail(Status::invalid_argument, "the first ", wanted, " of a dimension");
  }
  std::int32_t sizes[max_rank] = {};
  for (std::size_t i = 0; i < input.rank; ++i) {
    sizes[i] = i == dim ? static_cast<std::int32_t>(wanted) : input.sizes[i];
  }
  arguments.resize(output, sizes, input.rank);
  if (arguments.resize(indices, sizes, input.rank) != Status::ok || finder_for(input.dtype) == nullptr) {
    return arguments.ok() ? arguments.unsupported_dtype(input) : arguments.status();
  }
  with_compute_type(input.dtype, [&](auto type) {
    choose_first<type_of<decltype(type)>>(input, output, indices, dim, greatest);
  });
  return arguments.status();
}

Status cumsum_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, dim, dtype, out
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  Tensor& output = arguments.output(3);
  arguments.expect_dtype(output, arguments.scalar_type_or(2, output.dtype), "the output");
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  return with_compute_type(output.dtype, [&](auto type) {
    using Compute = type_of<decltype(type)>;
    const auto load = load_of<Compute>(input.dtype);
    if (load == nullptr || store_of<Compute>(output.dtype) == nullptr) {
      return arguments.unsupported_dtype(input);
    }
    sum_along<Compute>(input, output, dim, load);
    return arguments.status();
  });
}

}  // namespace ethosu_sdk::kernels
