// A stub of what CMSIS-Toolbox generates.
#pragma once
#define CMSIS_device_header "stub_device.h"
