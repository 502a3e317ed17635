// Builds a method's state out of a verified program.
#pragma once

#include "runtime/pool.hpp"
#include "runtime/state.hpp"

namespace ethosu_sdk::runtime {

class MethodLoader {
 public:
  // Failures are explained in `error`, place first.
  MethodLoader(MethodState& state, const MemoryPlan& memory, Pool& pool, ErrorText& error)
      : state_(state), memory_(memory), pool_(pool), error_(error) {}

  Status load_values();
  Status load_operators(Span<const KernelEntry> kernels);
  // Every index of every instruction, so that execution need not check them.
  Status check_instructions();
  Status load_delegates(Delegate* delegate);

 private:
  template <typename... Pieces>
  Status fail(Status status, const Pieces&... pieces) {
    (error_ << ... << pieces);
    return status;
  }

  Status check_value_indices(const char* what, const flatbuffers::Vector<std::int32_t>* indices);
  Status check_value_index(const char* what, std::int64_t index);
  Status check_instruction(const schema::Instruction& instruction, std::uint32_t count);
  Status check_call(const char* what, std::int32_t callee, std::size_t callees,
                    const flatbuffers::Vector<std::int32_t>* arguments);
  Status load_delegate(std::uint32_t index, Delegate* delegate);

  MethodState& state_;
  const MemoryPlan& memory_;
  Pool& pool_;
  ErrorText& error_;
  std::uint32_t longest_call_ = 0;
};

}  // namespace ethosu_sdk::runtime
