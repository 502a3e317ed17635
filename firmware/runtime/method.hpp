// Loads one method of a .pte and executes it: an interpreter of ExecuTorch 1.5.1's program format that reads
// the file in place and takes all memory that it needs from the caller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/kernel_api.hpp"
#include "runtime/delegate.hpp"

namespace ethosu_sdk::runtime {

// A kernel and the operator that it computes, such as {"aten::_softmax.out", kernels::softmax_out}.
struct KernelEntry {
  const char* name;
  KernelFn function;
};

// The caller's memory, all bases aligned to `memory_alignment`, all of it outliving the method.
struct MemoryPlan {
  Span<std::uint8_t> method_pool;               // the interpreter's own tables
  Span<const Span<std::uint8_t>> planned = {};  // planned[i] is the arena with memory_id i + 1
};

constexpr std::size_t memory_alignment = 16;

// The kinds of instructions, as records call them. Declared for the host in
// sdk/ethosu_sdk/program/protocol.py.
namespace instruction_kind {
constexpr char kernel[] = "kernel";
constexpr char delegate[] = "delegate";
constexpr char move[] = "move";
constexpr char jump[] = "jump";
constexpr char free[] = "free";
}  // namespace instruction_kind

// Told of every instruction that has completed.
class InstructionObserver {
 public:
  // `kind` is one of `instruction_kind`; `name` the operator with its overload ("aten::_softmax.out"), the
  // delegate's backend, or "". Both are valid during the call only.
  virtual void on_instruction(std::uint32_t index, const char* kind, const char* name) = 0;

 protected:
  ~InstructionObserver() = default;
};

struct MethodState;  // lies in the method pool
class DataFiles;

class Method {
 public:
  // Loads the method `name`. `pte` starts at an address aligned to `memory_alignment` and outlives the
  // method, as do `kernels` and `delegate`, which may be nullptr for programs that delegate nothing. Every
  // index, offset and size in the file is checked here or before its use. `data` are the program's data
  // files, if it has any; they outlive the method, too.
  Status load(Span<const std::uint8_t> pte, const char* name, const MemoryPlan& memory,
              Span<const KernelEntry> kernels, Delegate* delegate, const DataFiles* data = nullptr);

  std::uint32_t input_count() const;
  std::uint32_t output_count() const;
  std::uint32_t delegate_count() const;
  // Bytes that load() took of MemoryPlan::method_pool.
  std::size_t pool_used() const { return pool_used_; }

  // nullptr when the index is out of range or the value is no Tensor. Inputs share memory with intermediate
  // tensors: write them before every execute(), and read outputs before the next.
  Tensor* input(std::uint32_t index) const;
  Tensor* output(std::uint32_t index) const;
  // The same for values of any kind.
  const Value* input_value(std::uint32_t index) const;
  const Value* output_value(std::uint32_t index) const;

  // Gives memory to an input or output that the program plans none for.
  Status bind(Tensor& tensor, Span<std::uint8_t> memory);

  // Runs all instructions; `observer` may be nullptr.
  Status execute(InstructionObserver* observer);

  // Where and why the last call failed, such as "instruction 3, aten::_softmax.out: argument 1 is none".
  const char* error_text() const { return error_.c_str(); }

 private:
  MethodState* state_ = nullptr;
  std::size_t pool_used_ = 0;
  ErrorText error_;
};

}  // namespace ethosu_sdk::runtime
