#include "app/resident/placement.hpp"

#include <cstring>

#include "app/log.hpp"

namespace ethosu_sdk::app {
namespace {

constexpr std::size_t pool_alignment = 16;
constexpr std::size_t model_alignment = 128;  // what ExecuTorch aligns segments to
constexpr char mode_flag[] = "--memory-mode=";

constexpr std::size_t aligned(std::size_t size, std::size_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

// Whether the `size` characters at `text` are `name`, or only begin with it.
bool is(const char* text, std::size_t size, const char* name) {
  return std::strlen(name) == size && std::memcmp(text, name, size) == 0;
}

bool begins(const char* text, std::size_t size, const char* name) {
  return std::strlen(name) <= size && std::memcmp(text, name, std::strlen(name)) == 0;
}

// The most scratch that any delegate needs, and the memory mode: the given one, or that which all of them
// name.
class DelegateNeeds final : public runtime::DelegateReader {
 public:
  DelegateNeeds(GivenMode given, Failure& failure)
      : mode(given.mode), is_given_(given.is_given), failure_(failure) {}

  Status on_delegate(std::uint32_t index, Span<const std::uint8_t> payload,
                     Span<const std::uint8_t> compile_flags) override {
    npu::Payload parsed;
    if (const npu::Result result = npu::parse_payload(payload.data(), payload.size(), parsed); !result.ok()) {
      return refuse(npu::code_name(result.code), index, "its payload is damaged");
    }
    scratch_bytes = parsed.scratch_bytes > scratch_bytes ? parsed.scratch_bytes : scratch_bytes;
    return is_given_ ? Status::ok : read_mode(index, compile_flags);
  }

  std::size_t scratch_bytes = 0;
  npu::MemoryMode mode;

 private:
  Status read_mode(std::uint32_t index, Span<const std::uint8_t> compile_flags) {
    npu::MemoryMode found{};
    switch (memory_mode_of(compile_flags, found)) {
      case ModeError::missing:
        return refuse("no_memory_mode", index, "it does not tell Vela's --memory-mode");
      case ModeError::unknown:
        return refuse("unknown_memory_mode", index,
                      "it was compiled for a memory mode that is not Vela's own");
      case ModeError::none:
        break;
    }
    if (index != 0 && found != mode) {
      return refuse("two_memory_modes", index, "it was compiled for another memory mode than the one before");
    }
    mode = found;
    return Status::ok;
  }

  Status refuse(const char* code, std::uint32_t index, const char* reason) {
    failure_.say("load", code, "delegate ", index, ": ", reason);
    return Status::delegate_failed;
  }

  bool is_given_;
  Failure& failure_;
};

bool carve_planned(const runtime::ProgramFacts& facts, const ResidentPools& pools, Failure& failure) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < facts.planned_count; ++i) {
    const std::size_t size = facts.planned_bytes[i];
    if (i >= pools.planned_buffers.size() || size > pools.planned.size() - used) {
      return failure.say("load", "planned_too_small", "planned buffer ", i + 1, " needs ", size, " bytes, ",
                         pools.planned.size() - used, " of ", pools.planned.size(), " are left");
    }
    pools.planned_buffers[i] = {pools.planned.data() + used, size};
    used += aligned(size, pool_alignment);
    used = used < pools.planned.size() ? used : pools.planned.size();
  }
  return true;
}

// Sram_Only wants weights and commands beside the NPU too: behind the scratch, if they fit.
Span<const std::uint8_t> place_model(Span<const std::uint8_t> model, Span<std::uint8_t> fast,
                                     std::size_t scratch_bytes) {
  const std::size_t offset = aligned(scratch_bytes, model_alignment);
  if (offset > fast.size() || model.size() > fast.size() - offset) {
    ETHOSU_LOG_INFO("Sram_Only wants the model of ", model.size(), " bytes beside the NPU, where ",
                    fast.size() - (offset < fast.size() ? offset : fast.size()),
                    " are left: it lies in DDR.");
    return model;
  }
  std::memcpy(fast.data() + offset, model.data(), model.size());
  return {fast.data() + offset, model.size()};
}

}  // namespace

// A later flag overrides an earlier one, as in Vela itself.
ModeError memory_mode_of(Span<const std::uint8_t> compile_flags, npu::MemoryMode& mode) {
  const char* const text = reinterpret_cast<const char*>(compile_flags.data());
  ModeError error = ModeError::missing;
  for (std::size_t at = 0, end = 0; at < compile_flags.size(); at = end + 1) {
    for (end = at; end < compile_flags.size() && text[end] != ' ';) {
      ++end;
    }
    if (!begins(text + at, end - at, mode_flag)) {
      continue;
    }
    const char* const name = text + at + std::strlen(mode_flag);
    const std::size_t size = end - at - std::strlen(mode_flag);
    error = ModeError::none;
    if (is(name, size, "Sram_Only")) {
      mode = npu::MemoryMode::sram_only;
    } else if (is(name, size, "Shared_Sram")) {
      mode = npu::MemoryMode::shared_sram;
    } else if (begins(name, size, "Dedicated_Sram")) {
      mode = npu::MemoryMode::dedicated_sram;
    } else {
      error = ModeError::unknown;
    }
  }
  return error;
}

bool place_program(Span<const std::uint8_t> model, const ResidentPools& pools, GivenMode given,
                   RunnerSetup& setup, Failure& failure) {
  runtime::ProgramFacts facts;
  DelegateNeeds needs(given, failure);
  ErrorText reason;
  if (const Status status = runtime::read_facts(model, facts, needs, reason); status != Status::ok) {
    return failure.code == nullptr ? failure.say("load", status_name(status), reason.c_str()) : false;
  }
  if (facts.delegate_count > pools.payloads.size()) {
    return failure.say("load", "too_many_delegates", facts.delegate_count, " delegates, there is room for ",
                       pools.payloads.size());
  }
  if (!carve_planned(facts, pools, failure)) {
    return false;
  }
  const bool dedicated = needs.mode == npu::MemoryMode::dedicated_sram;
  const bool beside = !dedicated && needs.scratch_bytes <= pools.fast.size();
  if (!dedicated && !beside) {
    ETHOSU_LOG_INFO("The scratch of ", needs.scratch_bytes, " bytes does not fit the ", pools.fast.size(),
                    " beside the NPU: it lies in DDR.");
  }
  setup.model = model;
  if (needs.mode == npu::MemoryMode::sram_only && beside && facts.delegate_count != 0) {
    setup.model = place_model(model, pools.fast, needs.scratch_bytes);
  }
  pools.method_setup = {facts.method,
                        {pools.method, {pools.planned_buffers.data(), facts.planned_count}},
                        {pools.payloads.data(), facts.delegate_count}};
  setup.methods = {&pools.method_setup, 1};
  setup.memory_mode = needs.mode;
  setup.npu_memory = {beside ? Span<std::uint8_t>{pools.fast.data(), needs.scratch_bytes} : pools.scratch,
                      dedicated ? pools.fast : Span<std::uint8_t>{}};
  return true;
}

}  // namespace ethosu_sdk::app
