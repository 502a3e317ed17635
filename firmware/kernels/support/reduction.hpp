// Operators that go through some dimensions of a tensor and leave one element of each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/arguments.hpp"
#include "kernels/support/layout.hpp"
#include "kernels/support/walk.hpp"

namespace ethosu_sdk::kernels {

// Which dimensions of a tensor go, and which stay. Sizes and strides are by the input's dimensions.
struct Reduction {
  bool reduced[max_rank] = {};
  std::int32_t kept_sizes[max_rank] = {};     // 1 where reduced
  std::int32_t reduced_sizes[max_rank] = {};  // 1 where kept
  std::size_t rank = 0;
  std::size_t count = 1;  // elements that become one
  Strides from;
};

// Over the given dimensions; none means all of them.
Reduction reduction_over(Arguments& arguments, const Tensor& input, const std::int64_t* dims,
                         std::size_t count);
// Over the dimensions that an argument names: an integer, a list of them, or none for all.
Reduction read_reduction(Arguments& arguments, const Tensor& input, std::size_t index);

// Gives `output` the result's shape; returns its strides by the input's dimensions, 0 for reduced ones.
Strides resize_to_kept(Arguments& arguments, const Reduction& reduction, bool keep_dims, Tensor& output);

// Calls `function(first element, offset of the result)` for every result.
template <typename Function>
void for_each_result(const Reduction& reduction, const Strides& to, Function&& function) {
  const Strides strides[] = {reduction.from, to};
  walk(reduction.kept_sizes, reduction.rank, strides,
       [&](const std::size_t(&at)[2]) { function(at[0], at[1]); });
}

// Calls `function(offset)` for every element of one result, the last dimension fastest.
template <typename Function>
void for_each_reduced(const Reduction& reduction, std::size_t first, Function&& function) {
  const Strides strides[] = {reduction.from};
  walk(reduction.reduced_sizes, reduction.rank, strides,
       [&](const std::size_t(&at)[1]) { function(first + at[0]); });
}

}  // namespace ethosu_sdk::kernels
