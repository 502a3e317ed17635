// aten::index_select, embedding, gather, scatter and scatter_add.
#include "kernels/operators/indexing.hpp"

#include <algorithm>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/copy.hpp"
#include "kernels/support/dispatch.hpp"
#include "kernels/support/elements.hpp"
#include "kernels/support/walk.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

// Calls `function(offset in the whole, element's number tuple)` for every element of `index`: where it points
// along `dim` of a tensor with these sizes and strides.
template <typename Function>
Status for_each_target(Arguments& arguments, const Tensor& index, std::size_t dim, const Tensor& whole,
                       Function&& function) {
  const View elements = view_of(whole);
  const View own = view_of(index);
  const std::int64_t size = whole.rank == 0 ? 1 : whole.sizes[dim];
  if (index.element_count() == 0) {
    return arguments.status();
  }
  walk_indices(index.sizes, index.rank, [&](const std::int32_t* at) {
    const std::size_t position = read_index(arguments, index, own.at(at), size, false);
    if (!arguments.ok()) {
      return;
    }
    std::size_t offset = position * elements.strides[dim];
    for (std::size_t i = 0; i < index.rank; ++i) {
      offset += i == dim ? 0 : static_cast<std::size_t>(at[i]) * elements.strides[i];
    }
    function(offset, at);
  });
  return arguments.status();
}

// PyTorch's rule for gather and scatter: `index` is no larger than `other` except along `dim`.
void expect_inside(Arguments& arguments, const Tensor& index, const Tensor& other, std::size_t dim) {
  if (!arguments.ok() || index.element_count() == 0) {
    return;
  }
  if (other.element_count() == 0) {
    arguments.fail(Status::invalid_argument, "an index of a tensor without elements");
    return;
  }
  const bool ranks_fit = std::max<std::size_t>(index.rank, 1) == std::max<std::size_t>(other.rank, 1);
  for (std::size_t i = 0; ranks_fit && i < std::min(index.rank, other.rank); ++i) {
    if (i != dim && index.sizes[i] > other.sizes[i]) {
      arguments.fail(Status::shape_mismatch, "size ", i, " of the index is ", index.sizes[i],
                     ", not at most ", other.sizes[i]);
    }
  }
  if (!ranks_fit) {
    arguments.fail(Status::shape_mismatch, "an index of rank ", index.rank, " for a tensor of rank ",
                   other.rank);
  }
}

// Copies the input, then calls `function(offset in the output, index tuple)` for every element of the index.
template <typename Function>
Status scatter(Arguments& arguments, const Tensor& index, std::size_t dim, const Tensor& input,
               Tensor& output, Function&& function) {
  arguments.expect_dtype(output, input.dtype, "the output");
  expect_index_dtype(arguments, index);
  expect_inside(arguments, index, input, dim);
  if (arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  copy_all(input, output);
  return for_each_target(arguments, index, dim, output, function);
}

using Move = void (*)(const Tensor& source, std::size_t from, Tensor& output, std::size_t to);

template <typename Compute>
void add_element(const Tensor& source, std::size_t from, Tensor& output, std::size_t to) {
  const auto load = load_of<Compute>(output.dtype);
  const Compute left = load(output.data, to);
  const Compute right = load(source.data, from);
  store_of<Compute>(output.dtype)(output.data, to, wrapping_sum(left, right));
}

// What adds elements of a dtype; nullptr: nothing does.
Move addition_of(ScalarType dtype) {
  return with_compute_type(dtype, [dtype](auto type) -> Move {
    using Compute = type_of<decltype(type)>;
    return load_of<Compute>(dtype) == nullptr ? nullptr : add_element<Compute>;
  });
}

// self, dim, index, src, out: the source's elements go where the index says.
Status scatter_source(Arguments& arguments, Move move) {
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  const Tensor& index = arguments.tensor(2);
  const Tensor& source = arguments.tensor(3);
  Tensor& output = arguments.output(4);
  arguments.expect_dtype(source, input.dtype, "the source");
  expect_inside(arguments, index, source, max_rank);
  if (arguments.ok() && move == nullptr) {
    arguments.unsupported_dtype(input);
  }
  const View from = arguments.ok() ? view_of(source) : View{};
  return scatter(arguments, index, dim, input, output,
                 [&](std::size_t to, const std::int32_t* at) { move(source, from.at(at), output, to); });
}

}  // namespace

Status expect_index_dtype(Arguments& arguments, const Tensor& index) {
  if (arguments.ok() && index.dtype != ScalarType::int64 && index.dtype != ScalarType::int32) {
    arguments.fail(Status::invalid_argument, "the index is ", scalar_type_name(index.dtype));
  }
  return arguments.status();
}

std::size_t read_index(Arguments& arguments, const Tensor& index, std::size_t offset, std::int64_t size,
                       bool allow_negative) {
  const std::int64_t wanted = index.dtype == ScalarType::int64
                                  ? index.as<const std::int64_t>()[offset]
                                  : std::int64_t{index.as<const std::int32_t>()[offset]};
  if (wanted >= size || wanted < (allow_negative ? -size : 0)) {
    arguments.fail(Status::invalid_argument, "index ", wanted, " of a dimension of ", size);
    return 0;
  }
  return static_cast<std::size_t>(wanted < 0 ? wanted + size : wanted);
}

Status index_select_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, dim, index, out
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  const Tensor& index = arguments.tensor(2);
  Tensor& output = arguments.output(3);
  arguments.expect_dtype(output, input.dtype, "the output");
  expect_index_dtype(arguments, index);
  if (!arguments.ok() || index.rank > 1) {
    return arguments.fail(Status::invalid_argument, "an index of rank ", index.rank);
  }
  std::int32_t sizes[max_rank] = {};
  std::copy_n(input.sizes, input.rank, sizes);
  const auto count = static_cast<std::int32_t>(index.element_count());
  if (input.rank != 0) {
    sizes[dim] = count;
  }
  if (arguments.resize(output, sizes, input.rank) != Status::ok) {
    return arguments.status();
  }
  const View from = view_of(input);
  const View to = view_of(output);
  for (std::int32_t i = 0; i < count && arguments.ok(); ++i) {
    const std::int64_t size = input.rank == 0 ? 1 : input.sizes[dim];
    const std::size_t position = read_index(arguments, index, static_cast<std::size_t>(i), size, false);
    if (arguments.ok()) {
      copy_elements(input, part_of(from, dim, static_cast<std::int64_t>(position), 1), output,
                    part_of(to, dim, i, 1));
    }
  }
  return arguments.status();
}

Status embedding_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 6);  // weight, indices, padding_idx, two that training uses, out
  const Tensor& table = arguments.tensor(0);
  const Tensor& index = arguments.tensor(1);
  Tensor& output = arguments.output(5);
  arguments.expect_dtype(output, table.dtype, "the output");
  expect_index_dtype(arguments, index);
  static_cast<void>(arguments.integer(2));  // what only training uses
  static_cast<void>(arguments.boolean(3));
  static_cast<void>(arguments.boolean(4));
  if (!arguments.ok() || table.rank != 2 || index.rank == max_rank) {
    return arguments.fail(Status::invalid_argument, "a table of rank ", table.rank);
  }
  std::int32_t sizes[max_rank] = {};
  std::copy_n(index.sizes, index.rank, sizes);
  sizes[index.rank] = table.sizes[1];
  if (arguments.resize(output, sizes, index.rank + 1u) != Status::ok || output.element_count() == 0) {
    return arguments.status();
  }
  const View from = view_of(table);
  const View own = view_of(index);
  const View to = view_of(output);
  const View rows = slice_at(to, index.rank, 0);  // the first element of each
  const std::size_t columns[] = {index.rank};
  View row_to = chosen_dims(to, columns, 1);
  walk_indices(index.sizes, index.rank, [&](const std::int32_t* at) {
    const std::size_t row = read_index(arguments, index, own.at(at), table.sizes[0], false);
    if (arguments.ok()) {
      row_to.first = rows.at(at);
      copy_elements(table, slice_at(from, 0, row), output, row_to);
    }
  });
  return arguments.status();
}

Status gather_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, dim, index, sparse_grad, out
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  const Tensor& index = arguments.tensor(2);
  Tensor& output = arguments.output(4);
  static_cast<void>(arguments.boolean(3));  // what only training uses
  arguments.expect_dtype(output, input.dtype, "the output");
  expect_index_dtype(arguments, index);
  expect_inside(arguments, index, input, dim);
  if (arguments.resize_like(output, index) != Status::ok) {
    return arguments.status();
  }
  const View to = view_of(output);
  return for_each_target(arguments, index, dim, input, [&](std::size_t from, const std::int32_t* at) {
    copy_element(input, from, output, to.at(at));
  });
}

Status scatter_src_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);
  return scatter_source(arguments, copy_element);
}

Status scatter_value_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);
  const Tensor& input = arguments.tensor(0);
  const std::size_t dim = arguments.dim(1, input.rank);
  const Tensor& index = arguments.tensor(2);
  const Scalar number = arguments.scalar(3);
  Tensor& output = arguments.output(4);
  const auto store_real = store_of<double>(output.dtype);
  const auto store_integer = store_of<std::int64_t>(output.dtype);
  if (arguments.ok() && (store_real == nullptr || store_integer == nullptr)) {
    arguments.unsupported_dtype(output);
  }
  return scatter(arguments, index, dim, input, output, [&](std::size_t to, const std::int32_t*) {
    if (number.is_real()) {
      store_real(output.data, to, number.real);
    } else {
      store_integer(output.data, to, number.integer);
    }
  });
}

Status scatter_add_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);
  return scatter_source(arguments, addition_of(arguments.tensor(0).dtype));
}

}  // namespace ethosu_sdk::kernels
