// A stub of Zephyr's header.
#pragma once
#include <zephyr/device.h>
extern "C" void uart_poll_out(const struct device* device, unsigned char character);
