// One run, from the boot record to the end record.
#pragma once

#include <cstdint>

#include "app/bytes.hpp"
#include "app/ethosu_delegate.hpp"
#include "app/input_image.hpp"
#include "app/record_writer.hpp"
#include "app/text.hpp"
#include "npu/driver.hpp"
#include "runtime/method.hpp"

namespace ethosu_sdk::app {

struct RunnerSetup {
  const char* firmware;  // name and version
  const char* method;
  npu::MemoryMode memory_mode;
  std::uint32_t npu_timeout_ms;
  Span<const std::uint8_t> model;
  runtime::MemoryPlan memory;
  EthosUDelegate::Memory npu_memory;
  Span<const runtime::KernelEntry> kernels;
  Span<std::uint8_t> input_pool;
};

class Runner final : private runtime::InstructionObserver, private JobObserver {
 public:
  explicit Runner(const RunnerSetup& setup);

  // Returns the run's exit code.
  int run();

 private:
  bool run_stages();
  void announce();
  bool open_npu();
  bool load_method();
  bool open_inputs();
  bool infer(std::uint32_t inference);
  bool set_input(std::uint32_t inference, std::uint32_t index);
  bool send_output(std::uint32_t inference, std::uint32_t index);
  void report_memory();

  void on_instruction(std::uint32_t index, const char* kind, const char* name) override;
  void on_job(std::uint32_t instruction, const npu::Counters& counters) override;

  // Writes the `error` record; always false, for `return fail(...)`.
  template <typename... Pieces>
  bool fail(const char* stage, const char* code, const Pieces&... pieces);
  bool fail_method(const char* stage, Status status);

  RunnerSetup setup_;
  Console console_;
  RecordWriter records_{console_};
  npu::Driver npu_;
  EthosUDelegate delegate_;
  runtime::Method method_;
  InputImage image_;
  std::uint32_t inference_ = 0;
  std::uint32_t delegate_calls_ = 0;
  std::uint32_t inferences_done_ = 0;
};

}  // namespace ethosu_sdk::app
