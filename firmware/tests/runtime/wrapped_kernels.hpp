// The table of all kernels with another function before each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "tests/runtime/all_kernels.hpp"

namespace ethosu_sdk::host {

constexpr std::size_t most_kernels = 320;

// `Wrapper::call(kernel, context, arguments)` gets each call and the kernel that it is for.
template <typename Wrapper, std::size_t Index>
Status wrapped_call(KernelContext& context, Span<Value* const> arguments) {
  return Wrapper::call(plain_kernels()[Index], context, arguments);
}

template <typename Wrapper, std::size_t... Indices>
constexpr std::array<KernelFn, most_kernels> wrapped_calls(std::index_sequence<Indices...>) {
  return {wrapped_call<Wrapper, Indices>...};
}

template <typename Wrapper>
Span<const runtime::KernelEntry> wrapped_kernels() {
  static constexpr auto functions = wrapped_calls<Wrapper>(std::make_index_sequence<most_kernels>());
  static std::array<runtime::KernelEntry, most_kernels> table;
  const Span<const runtime::KernelEntry> plain = plain_kernels();
  if (plain.size() > most_kernels) {
    std::abort();
  }
  for (std::size_t i = 0; i < plain.size(); ++i) {
    table[i] = {plain[i].name, functions[i]};
  }
  return {table.data(), plain.size()};
}

}  // namespace ethosu_sdk::host
