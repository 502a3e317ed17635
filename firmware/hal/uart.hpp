// The board's console. Writing waits until the transmitter has room.
#pragma once

namespace ethosu_sdk::hal {

void uart_open();
void uart_write(char character);
void uart_drain();  // returns when everything written is on its way

}  // namespace ethosu_sdk::hal
