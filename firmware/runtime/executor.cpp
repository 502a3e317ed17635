#include "runtime/executor.hpp"

#include <cstring>

#include "hal/marks.hpp"

namespace ethosu_sdk::runtime {
namespace {

// Far above any real program's count; ends a program that jumps in a circle.
constexpr std::uint32_t instruction_limit = 1u << 20;

// A condition is a Bool, or a bool tensor that is true when all elements are.
bool read_condition(const Value& value, bool& condition) {
  if (value.is(ValueKind::boolean)) {
    condition = value.boolean;
    return true;
  }
  if (!value.is(ValueKind::tensor) || value.tensor->dtype != ScalarType::boolean ||
      value.tensor->data == nullptr) {
    return false;
  }
  condition = true;
  const std::size_t count = value.tensor->element_count();
  for (std::size_t i = 0; i < count; ++i) {
    condition = condition && value.tensor->as<const std::uint8_t>()[i] != 0;
  }
  return true;
}

}  // namespace

Status Executor::run() {
  const auto* const chains = state_.plan->chains();
  for (std::uint32_t i = 0; i < length(chains); ++i) {
    if (chains->Get(i)->instructions() == nullptr) {
      continue;
    }
    if (const Status status = run_chain(*chains->Get(i)->instructions()); status != Status::ok) {
      return status;
    }
  }
  return Status::ok;
}

Status Executor::run_chain(const Instructions& instructions) {
  next_ = 0;
  while (next_ < instructions.size()) {
    instruction_ = next_++;
    if (++executed_ > instruction_limit) {
      error_ << "instruction " << instruction_ << ": more than " << instruction_limit
             << " instructions executed";
      return Status::instruction_limit;
    }
    if (const Status status = step(*instructions.Get(instruction_)); status != Status::ok) {
      error_ << "instruction " << instruction_ << (*name_ == '\0' ? "" : ", ") << name_ << ": "
             << reason_.c_str();
      return status;
    }
  }
  return Status::ok;
}

Status Executor::step(const schema::Instruction& instruction) {
  name_ = "";
  switch (instruction.instr_args_type()) {
    case schema::InstructionArguments::KernelCall:
      return call_kernel(*instruction.instr_args_as_KernelCall());
    case schema::InstructionArguments::DelegateCall:
      return call_delegate(*instruction.instr_args_as_DelegateCall());
    case schema::InstructionArguments::JumpFalseCall:
      return jump_if_false(*instruction.instr_args_as_JumpFalseCall());
    case schema::InstructionArguments::FreeCall:
      return free_tensor(*instruction.instr_args_as_FreeCall());
    case schema::InstructionArguments::MoveCall: {
      // The value itself: a tensor stays where it is, and both values now name it.
      const auto& move = *instruction.instr_args_as_MoveCall();
      state_.values[static_cast<std::size_t>(move.move_to())] =
          state_.values[static_cast<std::size_t>(move.move_from())];
      report(instruction_kind::move, "");
      return Status::ok;
    }
    case schema::InstructionArguments::NONE:
    default:
      return Status::bad_program;  // load() has refused it
  }
}

Status Executor::call_kernel(const schema::KernelCall& call) {
  const Operator& callee = state_.operators[static_cast<std::size_t>(call.op_index())];
  name_ = callee.name;
  Span<Value* const> arguments;
  // A view's own tensor gets its memory from the kernel.
  const bool is_view = std::strcmp(callee.name, "executorch_prim::et_view.default") == 0;
  if (const Status status = gather_arguments(call.args(), is_view ? 2 : length(call.args()), arguments);
      status != Status::ok) {
    return status;
  }
  KernelContext context(reason_);
  hal::mark_kernel();
  const Status status = callee.function(context, arguments);
  hal::mark_runtime();
  if (status == Status::ok) {
    report(instruction_kind::kernel, name_);
  }
  return status;
}

Status Executor::call_delegate(const schema::DelegateCall& call) {
  const auto index = static_cast<std::uint32_t>(call.delegate_index());
  name_ = state_.delegate->backend_id();
  Span<Value* const> arguments;
  if (const Status status = gather_arguments(call.args(), length(call.args()), arguments);
      status != Status::ok) {
    return status;
  }
  const Status status = state_.delegate->execute(index, instruction_, arguments);
  if (status != Status::ok) {
    reason_ << state_.delegate->error_text();
    return status;
  }
  report(instruction_kind::delegate, name_);
  return Status::ok;
}

Status Executor::jump_if_false(const schema::JumpFalseCall& jump) {
  const Value& value = state_.values[static_cast<std::size_t>(jump.cond_value_index())];
  bool condition = false;
  if (!read_condition(value, condition)) {
    reason_ << "the condition is a " << value_kind_name(value.kind) << " that holds no bool";
    return Status::bad_program;
  }
  report(instruction_kind::jump, "");
  if (!condition) {
    next_ = static_cast<std::uint32_t>(jump.destination_instruction());
  }
  return Status::ok;
}

Status Executor::free_tensor(const schema::FreeCall& call) {
  Value& value = state_.values[static_cast<std::size_t>(call.value_index())];
  if (!value.is(ValueKind::tensor)) {
    reason_ << "it frees a " << value_kind_name(value.kind);
    return Status::bad_program;
  }
  value.tensor->data = nullptr;
  value.tensor->capacity_bytes = 0;
  report(instruction_kind::free, "");
  return Status::ok;
}

Status Executor::gather_arguments(const flatbuffers::Vector<std::int32_t>* indices, std::uint32_t checked,
                                  Span<Value* const>& arguments) {
  for (std::uint32_t i = 0; i < length(indices); ++i) {
    Value& value = state_.values[static_cast<std::size_t>(indices->Get(i))];
    state_.arguments[i] = &value;
    if (const Status status = i < checked ? check_data(value, i) : Status::ok; status != Status::ok) {
      return status;
    }
  }
  arguments = {state_.arguments.data(), length(indices)};
  return Status::ok;
}

Status Executor::check_data(const Value& value, std::uint32_t argument) {
  if (value.is(ValueKind::tensor_list) || value.is(ValueKind::optional_tensor_list)) {
    for (const Value* item : value.values()) {
      if (item->is(ValueKind::tensor) && item->tensor->data == nullptr && item->tensor->byte_count() != 0) {
        reason_ << "a tensor in argument " << argument << " has no memory";
        return Status::missing_data;
      }
    }
  }
  if (value.is(ValueKind::tensor) && value.tensor->data == nullptr && value.tensor->byte_count() != 0) {
    reason_ << "argument " << argument << " has no memory";
    return Status::missing_data;
  }
  return Status::ok;
}

void Executor::report(const char* kind, const char* name) {
  if (observer_ != nullptr) {
    observer_->on_instruction(instruction_, kind, name);
  }
}

}  // namespace ethosu_sdk::runtime
