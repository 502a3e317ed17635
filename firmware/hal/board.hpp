// Which board runs, and how a run ends. Implemented by board/<name>, chosen at link time.
#pragma once

namespace ethosu_sdk::hal {

// The board's name as the host writes it, such as "corstone-300".
const char* board_name();

// Ends the run: EOT (0x04) on the UART, then the simulator's own exit with `code`. Never returns.
[[noreturn]] void exit(int code);

}  // namespace ethosu_sdk::hal
