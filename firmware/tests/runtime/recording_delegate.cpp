#include "tests/runtime/recording_delegate.hpp"

#include <cinttypes>
#include <cstdio>

namespace ethosu_sdk::host {

Status RecordingDelegate::init(std::uint32_t index, Span<const std::uint8_t> payload,
                               const runtime::NamedBlobs&) {
  if (index != payloads_.size() || payload.empty()) {
    reason_ = "an index out of turn, or an empty payload";
    return Status::delegate_failed;
  }
  std::uint64_t sum = 0;
  for (const std::uint8_t byte : payload) {
    sum += byte;
  }
  std::printf("delegate %" PRIu32 " payload %zu bytes, sum %" PRIu64 "\n", index, payload.size(), sum);
  payloads_.push_back(payload);
  return Status::ok;
}

Status RecordingDelegate::execute(std::uint32_t index, std::uint32_t instruction,
                                  Span<Value* const> arguments) {
  if (index >= payloads_.size() || arguments.empty() ||
      !arguments[arguments.size() - 1]->is(ValueKind::tensor)) {
    reason_ = "no such delegate, or no output tensor";
    return Status::delegate_failed;
  }
  unsigned sum = 0;
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i]->is(ValueKind::tensor)) {
      const Tensor& input = *arguments[i]->tensor;
      for (std::size_t byte = 0; byte < input.byte_count(); ++byte) {
        sum += input.as<const std::uint8_t>()[byte];
      }
    }
  }
  const Tensor& output = *arguments[arguments.size() - 1]->tensor;
  for (std::size_t i = 0; i < output.byte_count() && !output.constant; ++i) {
    const std::size_t value = payloads_[index][0] + 3u * instruction + 5u * sum + i;
    output.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
  }
  return Status::ok;
}

}  // namespace ethosu_sdk::host
