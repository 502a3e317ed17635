// A method with its memory, a kernel and a delegate, for tests of the interpreter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/method.hpp"
#include "tests/runtime/program_builder.hpp"

namespace ethosu_sdk::host {

struct alignas(16) Memory {
  std::uint8_t bytes[4096];
};

// Adds its arguments but the last, element by element.
inline Status sum(KernelContext& context, Span<Value* const> arguments) {
  if (arguments.size() < 2) {
    return context.fail(Status::invalid_argument, "too few");
  }
  for (const Value* value : arguments) {
    if (!value->is(ValueKind::tensor)) {
      return context.fail(Status::invalid_argument, "no tensor");
    }
  }
  const Tensor& output = *arguments[arguments.size() - 1]->tensor;
  for (std::size_t i = 0; i < 4; ++i) {
    float total = 0;
    for (std::size_t n = 0; n + 1 < arguments.size(); ++n) {
      total += arguments[n]->tensor->as<const float>()[i];
    }
    output.as<float>()[i] = total;
  }
  return Status::ok;
}

inline constexpr runtime::KernelEntry kernels[] = {{"test::sum.out", sum}, {"test::sum", sum}};

class Delegate final : public runtime::Delegate {
 public:
  Status init(std::uint32_t index, Span<const std::uint8_t> payload, const runtime::NamedBlobs&) override {
    last_index = index;
    last_payload = payload;
    return refuse_init ? Status::delegate_failed : Status::ok;
  }
  Status execute(std::uint32_t, std::uint32_t, Span<Value* const>) override {
    ++executions;
    return refuse_execute ? Status::delegate_failed : Status::ok;
  }
  const char* error_text() const override { return "because"; }

  std::uint32_t last_index = 99;
  Span<const std::uint8_t> last_payload;
  unsigned executions = 0;
  bool refuse_init = false;
  bool refuse_execute = false;
};

// A method with its memory. The file lies at an aligned address and is exactly as long as it says.
struct Session {
  explicit Session(const std::vector<std::uint8_t>& content) : size(content.size()) {
    file.resize(size / sizeof(Memory) + 1);
    std::copy(content.begin(), content.end(), file.front().bytes);
  }
  explicit Session(ProgramBuilder& builder) : Session(builder.finish()) {}

  Status load(std::size_t pool_bytes = sizeof(Memory)) {
    const Span<std::uint8_t> arenas[] = {{planned[0].bytes, planned_bytes[0]},
                                         {planned[1].bytes, planned_bytes[1]}};
    spans[0] = arenas[0];
    spans[1] = arenas[1];
    return method.load({file.front().bytes, size}, "forward", {{pool.bytes, pool_bytes}, {spans, 2}},
                       {kernels, 2}, use_delegate ? &delegate : nullptr, data);
  }
  float* floats(std::size_t arena, std::size_t offset) {
    return reinterpret_cast<float*>(planned[arena].bytes + offset);
  }

  std::vector<Memory> file;
  std::size_t size;
  Memory pool{};
  Memory planned[2] = {};
  std::size_t planned_bytes[2] = {64, 64};
  Span<std::uint8_t> spans[2];
  Delegate delegate;
  bool use_delegate = true;
  const runtime::DataFiles* data = nullptr;
  runtime::Method method;
};

inline TensorRow at(std::uint32_t offset) {
  TensorRow row;
  row.offset_low = offset;
  return row;
}

// Two inputs and their sum.
inline void add_two(ProgramBuilder& builder) {
  builder.inputs = {builder.tensor(at(0)), builder.tensor(at(16))};
  builder.outputs = {builder.tensor(at(32))};
  builder.add_operator("test::sum", "out");
  builder.call(0, {builder.inputs[0], builder.inputs[1], builder.outputs[0]});
}

}  // namespace ethosu_sdk::host
