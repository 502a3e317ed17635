// The table of every kernel in kernels/kernels.toml.
#pragma once

#include "runtime/method.hpp"

namespace ethosu_sdk::host {

Span<const runtime::KernelEntry> all_kernels();
// The same for programs whose all_kernels() is something else.
Span<const runtime::KernelEntry> plain_kernels();

}  // namespace ethosu_sdk::host
