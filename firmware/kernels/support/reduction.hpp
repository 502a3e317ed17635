// Operators that go through some dimensions of a tensor and leave one element of each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/arguments.hpp"
#include "kernels/support/layout.hpp"
#include "kernels/support/walk.hpp"

namespace ethosu_sdk::kernels {

// Which dimensions of a tensor go, and which stay. The views have all of the input's dimensions.
struct Reduction {
  bool reduced[max_rank] = {};
  View results;           // the first element of each: size 1 where reduced
  View elements;          // of the first result: size 1 where kept
  std::size_t count = 1;  // elements that become one
};

// Over the given dimensions; none means all of them.
Reduction reduction_over(Arguments& arguments, const Tensor& input, const std::int64_t* dims,
                         std::size_t count);
// Over the dimensions that an argument names: an integer, a list of them, or none for all.
Reduction read_reduction(Arguments& arguments, const Tensor& input, std::size_t index);

// Gives `output` the result's shape; returns its elements by the input's dimensions, repeated in reduced
// ones.
View resize_to_kept(Arguments& arguments, const Reduction& reduction, bool keep_dims, Tensor& output);

// Calls `function(first element, offset of the result)` for every result.
template <typename Function>
void for_each_result(const Reduction& reduction, const View& to, Function&& function) {
  walk({&reduction.results, &to}, [&](const std::size_t(&at)[2]) { function(at[0], at[1]); });
}

// Calls `function(offset)` for every element of one result, the last dimension fastest.
template <typename Function>
void for_each_reduced(const Reduction& reduction, std::size_t first, Function&& function) {
  walk({&reduction.elements}, [&](const std::size_t(&at)[1]) { function(first + at[0]); });
}

}  // namespace ethosu_sdk::kernels
