// Runs the instructions of a loaded method.
#pragma once

#include "runtime/state.hpp"

namespace ethosu_sdk::runtime {

class Executor {
 public:
  // Failures are explained in `error`, place first; `observer` may be nullptr.
  Executor(MethodState& state, InstructionObserver* observer, ErrorText& error)
      : state_(state), observer_(observer), error_(error) {}

  Status run();

 private:
  using Instructions = flatbuffers::Vector<flatbuffers::Offset<schema::Instruction>>;

  Status run_chain(const Instructions& instructions);
  Status step(const schema::Instruction& instruction);
  Status call_kernel(const schema::KernelCall& call);
  Status call_delegate(const schema::DelegateCall& call);
  Status jump_if_false(const schema::JumpFalseCall& jump);
  Status free_tensor(const schema::FreeCall& call);
  // The first `checked` arguments must have memory.
  Status gather_arguments(const flatbuffers::Vector<std::int32_t>* indices, std::uint32_t checked,
                          Span<Value* const>& arguments);
  Status check_data(const Value& value, std::uint32_t argument);
  void report(const char* kind, const char* name);

  MethodState& state_;
  InstructionObserver* observer_;
  ErrorText& error_;
  const char* name_ = "";  // of the operator that is called
  ErrorText reason_;       // of the failure
  std::uint32_t instruction_ = 0;
  std::uint32_t next_ = 0;
  std::uint32_t executed_ = 0;
};

}  // namespace ethosu_sdk::runtime
