// What the board calls once the machine is ready. Implemented by the application.
#pragma once

namespace ethosu_sdk::hal {

// Returns the run's exit code.
int firmware_main();

}  // namespace ethosu_sdk::hal
