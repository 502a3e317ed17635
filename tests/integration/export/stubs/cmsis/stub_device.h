// A stub of a device header.
#pragma once
#include <cstdint>
enum IRQn_Type { ETHOS_U55_IRQn = 56, NPU0_IRQn = 16 };
void NVIC_EnableIRQ(IRQn_Type number);
