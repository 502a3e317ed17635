// The memory of one model: the embedded program and the pools around it, at the places of placement.ld.
#pragma once

#include "kernels/support/kernel_api.hpp"
#include "runtime/method.hpp"

namespace ethosu_sdk::app {

Span<const std::uint8_t> embedded_model();
Span<std::uint8_t> scratch_pool();
Span<std::uint8_t> fast_scratch_pool();
runtime::MemoryPlan memory_plan();
Span<std::uint8_t> input_image_pool();

}  // namespace ethosu_sdk::app
