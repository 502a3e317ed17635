// The runtime's delegate calls → jobs on the Ethos-U: copies inputs into the scratch region, runs the command
// stream, copies outputs out of it. What lies in the scratch region already is not copied.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/input_image.hpp"
#include "base/text.hpp"
#include "npu/driver.hpp"
#include "npu/payload.hpp"
#include "runtime/delegate.hpp"

namespace ethosu_sdk::app {

class JobObserver {
 public:
  // After a job that ended well; `instruction` is the DelegateCall's index.
  virtual void on_job(std::uint32_t instruction, const npu::Counters& counters) = 0;
  // After a call that ended well: one job, or one for each piece of its command stream.
  virtual void on_call() = 0;

 protected:
  ~JobObserver() = default;
};

// Why a delegate refused or failed, for the `error` record.
struct DelegateError {
  const char* code = nullptr;  // nullptr: no error
  Text<160> detail;
};

class EthosUDelegate final : public runtime::Delegate {
 public:
  struct Memory {
    Span<std::uint8_t> scratch;       // region 1
    Span<std::uint8_t> fast_scratch;  // region 2; empty unless the memory mode has one
  };

  EthosUDelegate(npu::Driver& driver, JobObserver& observer) : driver_(driver), observer_(observer) {}

  // Before the method is loaded. `timeout_ms` bounds one job.
  void use(const Memory& memory, std::uint32_t timeout_ms) {
    memory_ = memory;
    timeout_ms_ = timeout_ms;
  }

  // Before a method is loaded, and before it runs: one payload for each of its delegates.
  void use_payloads(Span<npu::Payload> payloads) { payloads_ = payloads; }

  // From here on calls run the pieces that `image` has of their streams; nullptr: whole streams.
  void cut(const InputImage* image) { pieces_ = image; }

  Status init(std::uint32_t index, Span<const std::uint8_t> payload,
              const runtime::NamedBlobs& blobs) override;
  Status execute(std::uint32_t index, std::uint32_t instruction, Span<Value* const> arguments) override;
  void* place(std::uint32_t index, std::uint32_t position, std::size_t bytes) override;
  std::uint32_t inputs(std::uint32_t index) const override { return payloads_[index].inputs.count; }
  const char* error_text() const override { return error_.detail.c_str(); }

  // The largest scratch of the programs so far.
  std::size_t scratch_used() const { return scratch_used_; }
  const DelegateError& error() const { return error_; }

 private:
  template <typename... Pieces>
  Status refuse(const char* code, const Pieces&... pieces);
  Status refuse(const npu::Result& result);
  Status check_arguments(const npu::Payload& payload, Span<Value* const> arguments);
  Status check_slot(const npu::Slot& slot, const Value& value, std::size_t argument, bool is_input);
  void forget(const npu::Payload& payload, Span<Value* const> arguments);
  Status run_pieces(std::uint32_t index, std::uint32_t instruction);
  Status run_job(const npu::Job& job, std::uint32_t instruction);
  npu::Job job_for(const npu::Payload& payload) const;

  npu::Driver& driver_;
  JobObserver& observer_;
  Memory memory_{};
  Span<npu::Payload> payloads_;
  std::uint32_t timeout_ms_ = 0;
  const InputImage* pieces_ = nullptr;
  DelegateError error_;
  std::size_t scratch_used_ = 0;
};

}  // namespace ethosu_sdk::app
