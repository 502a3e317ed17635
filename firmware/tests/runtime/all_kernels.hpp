// The table of every kernel in kernels/kernels.toml.
#pragma once

#include <cstddef>

#include "runtime/method.hpp"

namespace ethosu_sdk::host {

Span<const runtime::KernelEntry> all_kernels();
// How many parameters the manifest gives each of them, in the same order.
Span<const std::size_t> all_kernels_parameter_counts();
// The same for programs whose all_kernels() is something else.
Span<const runtime::KernelEntry> plain_kernels();

}  // namespace ethosu_sdk::host
