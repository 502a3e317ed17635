// Stands in for the NPU: prints what the runtime hands over, and fills outputs with bytes that tests can
// foretell.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/delegate.hpp"

namespace ethosu_sdk::host {

// Output byte i is first byte of the payload + 3 × instruction + 5 × (sum of all input bytes) + i, modulo
// 256.
class RecordingDelegate final : public runtime::Delegate {
 public:
  Status init(std::uint32_t index, Span<const std::uint8_t> payload,
              const runtime::NamedBlobs& blobs) override;
  Status execute(std::uint32_t index, std::uint32_t instruction, Span<Value* const> arguments) override;
  const char* error_text() const override { return reason_; }

 private:
  std::vector<Span<const std::uint8_t>> payloads_;
  const char* reason_ = nullptr;
};

}  // namespace ethosu_sdk::host
