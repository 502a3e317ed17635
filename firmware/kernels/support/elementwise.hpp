// Operators that compute each output element from one element of each input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/support/arguments.hpp"
#include "kernels/support/dispatch.hpp"
#include "kernels/support/elements.hpp"
#include "kernels/support/walk.hpp"

namespace ethosu_sdk::kernels {

// Gives `output` the shape of all inputs broadcast against each other.
Status resize_to_broadcast(Arguments& arguments, Span<const Tensor* const> inputs, Tensor& output);
Status resize_to_broadcast(Arguments& arguments, const Tensor& left, const Tensor& right, Tensor& output);

// `common` is what the operator computes in; its result must be storable in the output's dtype without a
// change of category.
Status check_result_dtype(Arguments& arguments, ScalarType common, const Tensor& output);

// Whether all are float32, which need no conversion of each element.
template <typename... Tensors>
bool are_float32(const Tensors&... tensors) {
  return ((tensors.dtype == ScalarType::float32) && ...);
}

template <typename Compute, typename Operation>
Status map_binary(Arguments& arguments, const Tensor& left, const Tensor& right, Tensor& output,
                  Operation&& operation) {
  const auto load_left = load_of<Compute>(left.dtype);
  const auto load_right = load_of<Compute>(right.dtype);
  const auto store = store_of<Compute>(output.dtype);
  if (load_left == nullptr || load_right == nullptr || store == nullptr) {
    return arguments.fail(Status::unsupported_argument, "this kernel does not compute ",
                          scalar_type_name(left.dtype), " and ", scalar_type_name(right.dtype), " to ",
                          scalar_type_name(output.dtype));
  }
  const View from_left = broadcast_view(left, output.sizes, output.rank);
  const View from_right = broadcast_view(right, output.sizes, output.rank);
  const View to = view_of(output);
  if constexpr (std::is_same_v<Compute, float>) {
    if (are_float32(left, right, output)) {
      const auto* const lefts = left.as<const float>();
      const auto* const rights = right.as<const float>();
      auto* const results = output.as<float>();
      walk({&from_left, &from_right, &to},
           [&](const std::size_t(&at)[3]) { results[at[2]] = operation(lefts[at[0]], rights[at[1]]); });
      return arguments.status();
    }
  }
  walk({&from_left, &from_right, &to}, [&](const std::size_t(&at)[3]) {
    store(output.data, at[2], operation(load_left(left.data, at[0]), load_right(right.data, at[1])));
  });
  return arguments.status();
}

// The input is broadcast to the output's shape, which it must fit.
template <typename Compute, typename Operation>
Status map_unary(Arguments& arguments, const Tensor& input, Tensor& output, Operation&& operation) {
  const auto load = load_of<Compute>(input.dtype);
  const auto store = store_of<Compute>(output.dtype);
  if (load == nullptr || store == nullptr) {
    return arguments.unsupported_dtype(input);
  }
  const View from = broadcast_view(input, output.sizes, output.rank);
  const View to = view_of(output);
  if constexpr (std::is_same_v<Compute, float>) {
    if (are_float32(input, output)) {
      const auto* const values = input.as<const float>();
      auto* const results = output.as<float>();
      walk({&from, &to}, [&](const std::size_t(&at)[2]) { results[at[1]] = operation(values[at[0]]); });
      return arguments.status();
    }
  }
  walk({&from, &to},
       [&](const std::size_t(&at)[2]) { store(output.data, at[1], operation(load(input.data, at[0]))); });
  return arguments.status();
}

}  // namespace ethosu_sdk::kernels
