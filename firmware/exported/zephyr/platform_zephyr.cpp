// The application on Zephyr: its console is the board's, its NPU the device tree's.
#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/drivers/uart.h>

#include "exported/npu_counters.hpp"
#include "exported/platform.hpp"
#include "exported/program.hpp"

namespace ethosu_sdk::exported {
namespace {

const struct device* const console = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));

}  // namespace

void console_put(char character) {
  uart_poll_out(console, static_cast<unsigned char>(character));
}

#if DT_NODE_EXISTS(DT_NODELABEL(ethosu0))
std::uintptr_t npu_base() {
  return DT_REG_ADDR(DT_NODELABEL(ethosu0));
}
#endif

}  // namespace ethosu_sdk::exported

int main() {
  using namespace ethosu_sdk::exported;
  const int code = run_program(program_setup());
  console_put('\x04');  // at which Arm's FVPs end
  return code;
}
