// The application on a board's CMSIS pack: its console is a CMSDK UART, its NPU that of the device header.
#include "RTE_Components.h"
#include CMSIS_device_header

#ifdef ETHOSU_SDK_NPU_BASE
#include <ethosu_driver.h>

#include "exported/npu_counters.hpp"
#endif

#include "exported/platform.hpp"
#include "exported/program.hpp"

namespace ethosu_sdk::exported {
namespace {

// Arm CMSDK APB UART, DDI 0479, section 4.3.
struct Uart {
  std::uint32_t DATA;
  std::uint32_t STATE;
  std::uint32_t CTRL;
  std::uint32_t INTSTATUS;
  std::uint32_t BAUDDIV;
};
constexpr std::uint32_t transmit_full = 1U << 0;    // STATE
constexpr std::uint32_t transmit_enable = 1U << 0;  // CTRL
constexpr std::uint32_t divider = 25'000'000 / 115'200;

volatile Uart& uart() {
  return *reinterpret_cast<volatile Uart*>(ETHOSU_SDK_UART_BASE);
}

#ifdef ETHOSU_SDK_NPU_BASE
struct ethosu_driver driver;

// Without its driver every job of the NPU fails, which the records then say.
void open_npu() {
  void* const base = reinterpret_cast<void*>(ETHOSU_SDK_NPU_BASE);
  if (ethosu_init(&driver, base, nullptr, 0, 1, 1) == 0) {  // Secure, privileged
    NVIC_EnableIRQ(ETHOSU_SDK_NPU_IRQ);
  }
}
#endif

}  // namespace

void console_put(char character) {
  while ((uart().STATE & transmit_full) != 0) {
  }
  uart().DATA = static_cast<unsigned char>(character);
}

#ifdef ETHOSU_SDK_NPU_BASE
std::uintptr_t npu_base() {
  return ETHOSU_SDK_NPU_BASE;
}
#endif

}  // namespace ethosu_sdk::exported

#ifdef ETHOSU_SDK_NPU_BASE
extern "C" void ETHOSU_SDK_NPU_HANDLER() {
  ethosu_irq_handler(&ethosu_sdk::exported::driver);
}
#endif

int main() {
  using namespace ethosu_sdk::exported;
  uart().BAUDDIV = divider;
  uart().CTRL = transmit_enable;
#ifdef ETHOSU_SDK_NPU_BASE
  open_npu();
#endif
  const int code = run_program(program_setup());
  console_put('\x04');  // at which Arm's FVPs end
  return code;
}
