// The board's console, as text is written to it.
#pragma once

#include "base/text.hpp"
#include "hal/uart.hpp"

namespace ethosu_sdk::app {

class Console final : public Sink {
 public:
  void put(char character) override { hal::uart_write(character); }
};

}  // namespace ethosu_sdk::app
