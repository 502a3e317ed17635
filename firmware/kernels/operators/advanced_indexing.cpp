// aten::index and index_put: several index tensors at once, or one mask.
#include <algorithm>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/operators/indexing.hpp"
#include "kernels/support/copy.hpp"
#include "kernels/support/elementwise.hpp"
#include "kernels/support/walk.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

// What whole[indices] picks: blocks of the dimensions that have no index, one for each element of the indices
// broadcast against each other. In the result the indices' dimensions stand where the first index does when
// all indices are neighbours, and first otherwise.
struct Picking {
  const Tensor* indices[max_rank] =
      {};  // by the whole's dimensions; nullptr: kept. A mask stands at its first
  bool picked[max_rank] = {};
  const Tensor* mask = nullptr;
  std::size_t mask_dim = 0;
  std::size_t block_dims[max_rank] = {};    // in the whole
  std::size_t block_places[max_rank] = {};  // in the result
  std::size_t block_rank = 0;
  std::int32_t picked_sizes[max_rank] = {};
  std::size_t picked_rank = 0;
  std::size_t picked_place = 0;  // in the result
  std::int32_t sizes[max_rank] = {};
  std::size_t rank = 0;
};

bool is_mask(const Tensor& index) {
  return index.dtype == ScalarType::boolean || index.dtype == ScalarType::uint8;
}

std::int32_t count_set(const Tensor& mask) {
  const auto* const flags = mask.as<const std::uint8_t>();
  std::int32_t count = 0;
  for (std::size_t i = 0; i < mask.element_count(); ++i) {
    count += flags[i] != 0 ? 1 : 0;
  }
  return count;
}

// Reads the list of indices, argument 1.
void read_indices(Arguments& arguments, const Tensor& whole, Picking& picking) {
  const std::size_t count = arguments.optional_tensor_count(1);
  std::size_t dim = 0;
  std::size_t found = 0;
  for (std::size_t i = 0; i < count && arguments.ok(); ++i) {
    const Tensor* const index = arguments.optional_list_tensor(1, i);
    const std::size_t covered = index != nullptr && is_mask(*index) ? index->rank : 1u;
    if (!arguments.ok() || dim + covered > whole.rank) {
      arguments.fail(Status::invalid_argument, "indices of more dimensions than the tensor's ", whole.rank);
      return;
    }
    if (index != nullptr && is_mask(*index)) {
      picking.mask = index;
      picking.mask_dim = dim;
      if (!std::equal(index->sizes, index->sizes + index->rank, whole.sizes + dim)) {
        arguments.fail(Status::shape_mismatch, "a mask of other sizes than the tensor's");
      }
    } else if (index != nullptr) {
      expect_index_dtype(arguments, *index);
      picking.indices[dim] = index;
    }
    found += index != nullptr ? 1 : 0;
    for (std::size_t k = 0; k < covered; ++k) {
      picking.picked[dim + k] = index != nullptr;
    }
    dim += covered;
  }
  if (arguments.ok() &&
      (found == 0 || (picking.mask != nullptr && (found != 1 || picking.mask->rank == 0)))) {
    arguments.fail(Status::unsupported_argument, found, " indices, one of them a mask, or none");
  }
}

// The sizes of the indices broadcast against each other.
void broadcast_indices(Arguments& arguments, const Tensor& whole, Picking& picking) {
  if (picking.mask != nullptr) {
    picking.picked_rank = 1;
    picking.picked_sizes[0] = count_set(*picking.mask);
    return;
  }
  for (std::size_t i = 0; i < whole.rank; ++i) {
    const std::size_t rank = picking.indices[i] == nullptr ? 0 : picking.indices[i]->rank;
    picking.picked_rank = std::max(picking.picked_rank, rank);
  }
  std::fill_n(picking.picked_sizes, picking.picked_rank, 1);
  for (std::size_t i = 0; i < whole.rank && arguments.ok(); ++i) {
    const Tensor* const index = picking.indices[i];
    for (std::size_t k = 0; index != nullptr && k < index->rank; ++k) {
      std::int32_t& size = picking.picked_sizes[picking.picked_rank - index->rank + k];
      if (index->sizes[k] != 1 && size != 1 && index->sizes[k] != size) {
        arguments.fail(Status::shape_mismatch, "indices of ", size, " and ", index->sizes[k],
                       " do not broadcast");
      }
      size = size == 1 ? index->sizes[k] : size;
    }
  }
}

Picking read_picking(Arguments& arguments, const Tensor& whole) {
  Picking picking;
  read_indices(arguments, whole, picking);
  if (arguments.ok()) {
    broadcast_indices(arguments, whole, picking);
  }
  if (!arguments.ok()) {
    return picking;
  }
  const bool* const end = picking.picked + whole.rank;
  const bool* const begin = picking.picked;
  const bool* const first = std::find(begin, end, true);
  const bool* const past = std::find(first, end, false);
  const bool neighbours = std::find(past, end, true) == end;
  picking.picked_place = neighbours ? static_cast<std::size_t>(first - begin) : 0;
  for (std::size_t i = 0; i < whole.rank; ++i) {
    if (!picking.picked[i]) {
      picking.block_dims[picking.block_rank++] = i;
    }
  }
  picking.rank = picking.block_rank + picking.picked_rank;
  if (picking.rank > max_rank) {
    arguments.fail(Status::unsupported_argument, "a result of rank ", picking.rank);
    return picking;
  }
  for (std::size_t i = 0; i < picking.picked_rank; ++i) {
    picking.sizes[picking.picked_place + i] = picking.picked_sizes[i];
  }
  for (std::size_t i = 0; i < picking.block_rank; ++i) {
    const std::size_t place = i < picking.picked_place ? i : i + picking.picked_rank;
    picking.block_places[i] = place;
    picking.sizes[place] = whole.sizes[picking.block_dims[i]];
  }
  return picking;
}

// A block in the whole, and in the result or what has its shape: `first` is to be set.
View block_of(const View& whole, const Picking& picking) {
  return chosen_dims(whole, picking.block_dims, picking.block_rank);
}
View block_in_result(const View& result, const Picking& picking) {
  return chosen_dims(result, picking.block_places, picking.block_rank);
}

// Calls `function(the block's first element in the whole, and in the result)` for every block.
template <typename Function>
void for_each_block(Arguments& arguments, const Tensor& whole, const Picking& picking, const View& result,
                    Function&& function) {
  const View own = view_of(whole);
  const std::size_t* const places = result.strides + picking.picked_place;
  if (picking.mask != nullptr) {
    const Tensor& mask = *picking.mask;
    const View flags = view_of(mask);
    std::size_t count = 0;
    walk_indices(mask.sizes, mask.rank, [&](const std::int32_t* at) {
      if (mask.as<const std::uint8_t>()[flags.at(at)] == 0) {
        return;
      }
      std::size_t from = 0;
      for (std::size_t i = 0; i < mask.rank; ++i) {
        from += static_cast<std::size_t>(at[i]) * own.strides[picking.mask_dim + i];
      }
      function(from, count++ * places[0]);
    });
    return;
  }
  walk_indices(picking.picked_sizes, picking.picked_rank, [&](const std::int32_t* at) {
    std::size_t from = 0;
    for (std::size_t i = 0; i < whole.rank; ++i) {
      const Tensor* const index = picking.indices[i];
      if (index != nullptr) {
        const View repeated = broadcast_view(*index, picking.picked_sizes, picking.picked_rank);
        from += read_index(arguments, *index, repeated.at(at), whole.sizes[i], true) * own.strides[i];
      }
    }
    std::size_t to = 0;
    for (std::size_t i = 0; i < picking.picked_rank; ++i) {
      to += static_cast<std::size_t>(at[i]) * places[i];
    }
    if (arguments.ok()) {
      function(from, to);
    }
  });
}

template <typename Compute>
void add_block(const Tensor& values, const View& from, Tensor& output, const View& to) {
  const auto load = load_of<Compute>(output.dtype);
  const auto store = store_of<Compute>(output.dtype);
  walk({&from, &to}, [&](const std::size_t(&at)[2]) {
    const Compute left = load(output.data, at[1]);
    const Compute right = load(values.data, at[0]);
    store(output.data, at[1], wrapping_sum(left, right));
  });
}

using AddBlock = void (*)(const Tensor&, const View&, Tensor&, const View&);

// What adds blocks of a dtype; nullptr: nothing does. Nothing adds float64.
AddBlock addition_of(ScalarType dtype) {
  return with_compute_type(dtype, [dtype](auto type) -> AddBlock {
    using Compute = type_of<decltype(type)>;
    if constexpr (std::is_same_v<Compute, double>) {
      return nullptr;
    } else {
      return load_of<Compute>(dtype) == nullptr ? nullptr : add_block<Compute>;
    }
  });
}

// Puts `values`, broadcast to the picked shape, where the indices say; `output` has the whole's elements.
Status put(Arguments& arguments, const Picking& picking, const Tensor& values, bool accumulate,
           Tensor& output) {
  for (std::size_t i = 0; i < values.rank && arguments.ok(); ++i) {
    const std::size_t from_end = values.rank - i;
    if (from_end > picking.rank ||
        (values.sizes[i] != 1 && values.sizes[i] != picking.sizes[picking.rank - from_end])) {
      arguments.fail(Status::shape_mismatch, "size ", i, " of the values is ", values.sizes[i]);
    }
  }
  const AddBlock add = addition_of(output.dtype);
  if (arguments.ok() && accumulate && add == nullptr) {
    arguments.unsupported_dtype(output);
  }
  if (!arguments.ok()) {
    return arguments.status();
  }
  const View repeated = broadcast_view(values, picking.sizes, picking.rank);
  View from = block_in_result(repeated, picking);
  View to = block_of(view_of(output), picking);
  for_each_block(arguments, output, picking, repeated, [&](std::size_t place, std::size_t source) {
    to.first = place;
    from.first = source;
    (accumulate ? add : copy_elements)(values, from, output, to);
  });
  return arguments.status();
}

}  // namespace

Status index_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& input = arguments.tensor(0);
  Tensor& output = arguments.output(2);
  arguments.expect_dtype(output, input.dtype, "the output");
  const Picking picking = read_picking(arguments, input);
  if (!arguments.ok() || arguments.resize(output, picking.sizes, picking.rank) != Status::ok) {
    return arguments.status();
  }
  const View result = view_of(output);
  View from = block_of(view_of(input), picking);
  View to = block_in_result(result, picking);
  for_each_block(arguments, input, picking, result, [&](std::size_t first, std::size_t place) {
    from.first = first;
    to.first = place;
    copy_elements(input, from, output, to);
  });
  return arguments.status();
}

Status index_put_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 5);  // self, indices, values, accumulate, out
  const Tensor& input = arguments.tensor(0);
  const Tensor& source = arguments.tensor(2);
  const bool accumulate = arguments.boolean(3);
  Tensor& output = arguments.output(4);
  arguments.expect_dtype(source, input.dtype, "the values");
  arguments.expect_dtype(output, input.dtype, "the output");
  const Picking picking = read_picking(arguments, input);
  if (!arguments.ok() || arguments.resize_like(output, input) != Status::ok) {
    return arguments.status();
  }
  copy_all(input, output);
  return put(arguments, picking, source, accumulate, output);
}

Status index_put_in_place(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 4);  // self, indices, values, accumulate: writes self
  Tensor& whole = arguments.output(0);
  const Tensor& source = arguments.tensor(2);
  const bool accumulate = arguments.boolean(3);
  arguments.expect_dtype(source, whole.dtype, "the values");
  const Picking picking = read_picking(arguments, whole);
  return arguments.ok() ? put(arguments, picking, source, accumulate, whole) : arguments.status();
}

}  // namespace ethosu_sdk::kernels
