// Where the NPU's registers are: the platform says it, by its device tree or its device header.
#pragma once

#include <cstdint>

namespace ethosu_sdk::exported {

std::uintptr_t npu_base();

}  // namespace ethosu_sdk::exported
