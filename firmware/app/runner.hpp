// One run, from the boot record to the end record.
#pragma once

#include <cstdint>

#include "app/console.hpp"
#include "app/ethosu_delegate.hpp"
#include "app/failure.hpp"
#include "app/feeding.hpp"
#include "app/input_image.hpp"
#include "app/kept_state.hpp"
#include "app/loaded_methods.hpp"
#include "app/record_writer.hpp"
#include "app/sequence.hpp"
#include "base/span.hpp"
#include "npu/driver.hpp"
#include "runtime/method.hpp"

namespace ethosu_sdk::app {

// Files that take the place of an input image and of `data` records.
class RunFiles {
 public:
  // Writes an input image for `method` into the input pool.
  virtual bool provide_inputs(const runtime::Method& method, Failure& failure) = 0;
  virtual bool take_output(std::uint32_t index, Bytes bytes, Failure& failure) = 0;

 protected:
  ~RunFiles() = default;
};

struct RunnerSetup {
  const char* firmware;  // name and version
  npu::MemoryMode memory_mode;
  std::uint32_t npu_timeout_ms;
  Span<const std::uint8_t> model;
  Span<const Span<const std::uint8_t>> data_files;  // of the model
  Span<const MethodSetup>
      methods;  // protocol::max_methods at most; the first runs unless the image has calls
  EthosUDelegate::Memory npu_memory;
  Span<const runtime::KernelEntry> kernels;
  Span<std::uint8_t> input_pool;
  RunFiles* files;  // nullptr: inputs come as an image, outputs leave as records
};

class Runner final : private runtime::InstructionObserver, private JobObserver {
 public:
  Runner() : delegate_(npu_, *this) {}

  // First of all: the console, the clock, and a fault is reported from here on.
  void open();
  // The last of these alone.
  void report_faults();
  // Each returns the run's exit code: one run, or why none begins.
  int run(const RunnerSetup& setup);
  int refuse(const Failure& failure);

 private:
  bool run_stages();
  void announce();
  bool open_npu();
  bool load_methods();
  bool begin_call(std::uint32_t number, std::uint32_t set);
  bool infer_sets(std::uint32_t first, std::uint32_t end);
  bool open_inputs();
  bool infer_all();
  bool infer(std::uint32_t set, std::uint32_t repeat);
  bool select_events(std::uint32_t repeat);
  bool begin_state();
  KeptState::Planned planned() const { return methods_.setup().memory.planned; }
  bool set_input(std::uint32_t set, std::uint32_t index);
  bool bind_input(Tensor& tensor, Bytes bytes);
  bool report_outputs(bool first, bool whole);
  bool report_output(std::uint32_t index, bool first, bool whole);
  bool send_output(std::uint32_t index, Bytes bytes);
  int finish(bool passed);
  void report_memory();

  void on_instruction(std::uint32_t index, const char* kind, const char* name) override;
  void on_job(std::uint32_t instruction, const npu::Counters& counters) override;
  void on_call() override { ++delegate_calls_; }
  runtime::Method& method() { return methods_.current(); }
  const runtime::Method& method() const { return methods_.current(); }

  // Writes the `error` record; always false, for `return fail(...)`.
  template <typename... Pieces>
  bool fail(const char* stage, const char* code, const Pieces&... pieces);
  bool fail(const Failure& failure);
  bool fail_method(const char* stage, Status status);

  // Outputs beyond these are sent anew by every repeat.
  static constexpr std::uint32_t remembered_outputs = 16;

  RunnerSetup setup_{};
  Console console_;
  RecordWriter records_{console_};
  npu::Driver npu_;
  EthosUDelegate delegate_;
  LoadedMethods methods_{delegate_};
  InputImage image_;
  Sequence sequence_;
  KeptState state_{sequence_, records_};
  Feeding feeding_{sequence_, records_};
  std::uint32_t call_begun_ = 0;  // the first inference of the call
  std::uint32_t inference_ = 0;   // the one that runs; the number of those that are done
  std::uint32_t delegate_calls_ = 0;
  std::uint64_t begun_ = 0;  // when the instruction began that is executed, in cycles
  std::uint32_t sent_crcs_[remembered_outputs] = {};  // of each output as it was last sent
};

}  // namespace ethosu_sdk::app
