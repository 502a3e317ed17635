// The application of one model: wires its pools, its kernels and its constants into a run.
#include "app/pools.hpp"
#include "app/runner.hpp"
#include "app/selected_kernels.hpp"
#include "hal/entry.hpp"
#include "model_config.hpp"

namespace ethosu_sdk {
namespace {

app::RunnerSetup setup() {
  return {
      model_config::firmware,
      model_config::memory_mode,
      model_config::npu_timeout_ms,
      app::embedded_model(),
      app::data_files(),
      app::method_setups(),
      {app::scratch_pool(), app::fast_scratch_pool()},
      app::selected_kernels(),
      app::input_image_pool(),
      nullptr,
  };
}

}  // namespace

int hal::firmware_main() {
  app::Runner runner;
  runner.open();
  return runner.run(setup());
}

}  // namespace ethosu_sdk
