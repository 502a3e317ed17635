// The board's console. Writing waits until the transmitter has room.
#pragma once

#include <cstdint>

namespace ethosu_sdk::hal {

void uart_open();
// The same, to receive as well, with `baud` bits a second in both directions.
void uart_open_both(std::uint32_t baud);
void uart_write(char character);
// Whether a character has arrived, which it then takes. Does not wait.
bool uart_read(char& character);
void uart_drain();  // returns when everything written is on its way

}  // namespace ethosu_sdk::hal
