// The methods of a program that a run can call, all loaded before the first inference.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/ethosu_delegate.hpp"
#include "app/protocol.hpp"
#include "base/span.hpp"
#include "runtime/data_files.hpp"
#include "runtime/method.hpp"

namespace ethosu_sdk::app {

// A method that is loaded, and its memory. Methods may share planned buffers.
struct MethodSetup {
  const char* name;
  runtime::MemoryPlan memory;
  Span<npu::Payload> payloads;  // one for each of its delegates
};

class LoadedMethods {
 public:
  explicit LoadedMethods(EthosUDelegate& delegate) : delegate_(delegate) {}

  // At most protocol::max_methods; what is given outlives this.
  void use(Span<const MethodSetup> setups, Span<const std::uint8_t> model,
           Span<const runtime::KernelEntry> kernels);
  // The data files of the program; the reason of a refusal goes to `reason`.
  Status open_data(Span<const Span<const std::uint8_t>> files, ErrorText& reason) {
    return data_.open(files, reason);
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(setups_.size()); }
  // Loads a method, or loads it again, and selects it. Loading writes the initial values of the program's own
  // tensors.
  Status load(std::uint32_t index);
  void select(std::uint32_t index);

  // The one that is selected.
  runtime::Method& current() { return methods_[chosen_]; }
  const runtime::Method& current() const { return methods_[chosen_]; }
  const MethodSetup& setup() const { return setups_[chosen_]; }
  std::uint32_t chosen() const { return chosen_; }

  // Of all of them.
  std::size_t delegates() const;
  std::uint32_t most_inputs() const;
  std::size_t pool_used() const;
  std::size_t pool_bytes() const;

 private:
  EthosUDelegate& delegate_;
  Span<const MethodSetup> setups_;
  Span<const std::uint8_t> model_;
  Span<const runtime::KernelEntry> kernels_;
  runtime::DataFiles data_;
  runtime::Method methods_[protocol::max_methods];
  std::uint32_t chosen_ = 0;
};

}  // namespace ethosu_sdk::app
