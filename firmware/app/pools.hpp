// The memory of one model: the embedded program and the pools around it, at the places of placement.ld.
#pragma once

#include "app/loaded_methods.hpp"

namespace ethosu_sdk::app {

Span<const std::uint8_t> embedded_model();
Span<const Span<const std::uint8_t>> data_files();
Span<std::uint8_t> scratch_pool();
Span<std::uint8_t> fast_scratch_pool();
// The methods of the program that are loaded, each with its share of the pools.
Span<const MethodSetup> method_setups();
Span<std::uint8_t> input_image_pool();

}  // namespace ethosu_sdk::app
