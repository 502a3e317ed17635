// The kernels of one model; defined by a generated file.
#pragma once

#include "kernels/support/kernel_api.hpp"
#include "runtime/method.hpp"

namespace ethosu_sdk::app {

Span<const runtime::KernelEntry> selected_kernels();

}  // namespace ethosu_sdk::app
