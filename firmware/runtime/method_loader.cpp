#include "runtime/method_loader.hpp"

#include <cstring>

#include "runtime/value_loader.hpp"

namespace ethosu_sdk::runtime {
namespace {

bool is_named(const char* full_name, const char* name, const char* overload) {
  const std::size_t length = std::strlen(name);
  if (std::strncmp(full_name, name, length) != 0) {
    return false;
  }
  const char* const rest = full_name + length;
  return *overload == '\0' ? *rest == '\0' : *rest == '.' && std::strcmp(rest + 1, overload) == 0;
}

const KernelEntry* find_kernel(Span<const KernelEntry> kernels, const char* name, const char* overload) {
  for (const KernelEntry& entry : kernels) {
    if (is_named(entry.name, name, overload)) {
      return &entry;
    }
  }
  return nullptr;
}

class ProgramBlobs final : public NamedBlobs {
 public:
  explicit ProgramBlobs(const ProgramFile& file) : file_(file) {}

  bool find(const char* key, Span<const std::uint8_t>& bytes) const override {
    NamedBlob blob;
    ErrorText reason;
    const bool found = file_.named_data(key, blob, reason) == Status::ok;
    bytes = blob.bytes;
    return found;
  }

 private:
  const ProgramFile& file_;
};

}  // namespace

Status MethodLoader::load_values() {
  const std::uint32_t count = length(state_.plan->values());
  state_.values = {pool_.take<Value>(count), count};
  if (state_.values.data() == nullptr) {
    return fail(Status::out_of_memory, "the method pool is too small for ", count, " values");
  }
  ValueLoader loader(state_.file, *state_.plan, memory_, pool_, state_.values, state_.none);
  if (const Status status = loader.check_planned_buffers(); status != Status::ok) {
    return fail(status, loader.reason().c_str());
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (const Status status = loader.load(i); status != Status::ok) {
      return fail(status, "value ", i, ": ", loader.reason().c_str());
    }
  }
  if (const Status status = check_value_indices("input", state_.plan->inputs()); status != Status::ok) {
    return status;
  }
  return check_value_indices("output", state_.plan->outputs());
}

Status MethodLoader::load_operators(Span<const KernelEntry> kernels) {
  const auto* const rows = state_.plan->operators();
  state_.operators = {pool_.take<Operator>(length(rows)), length(rows)};
  if (state_.operators.data() == nullptr) {
    return fail(Status::out_of_memory, "the method pool is too small for ", length(rows), " operators");
  }
  for (std::uint32_t i = 0; i < length(rows); ++i) {
    const char* const name = text_of(rows->Get(i)->name());
    const char* const overload = text_of(rows->Get(i)->overload());
    const KernelEntry* const kernel = find_kernel(kernels, name, overload);
    if (kernel == nullptr) {
      return fail(Status::missing_kernel, "no kernel for ", name, *overload == '\0' ? "" : ".", overload);
    }
    state_.operators[i] = {kernel->function, kernel->name};
  }
  return Status::ok;
}

Status MethodLoader::check_value_index(const char* what, std::int64_t index) {
  if (index < 0 || static_cast<std::uint64_t>(index) >= state_.values.size()) {
    return fail(Status::bad_program, what, " is value ", index, " of ", state_.values.size());
  }
  return Status::ok;
}

Status MethodLoader::check_value_indices(const char* what, const flatbuffers::Vector<std::int32_t>* indices) {
  for (std::uint32_t i = 0; i < length(indices); ++i) {
    if (const Status status = check_value_index(what, indices->Get(i)); status != Status::ok) {
      return status;
    }
  }
  return Status::ok;
}

Status MethodLoader::check_instructions() {
  const auto* const chains = state_.plan->chains();
  for (std::uint32_t chain = 0; chain < length(chains); ++chain) {
    const auto* const instructions = chains->Get(chain)->instructions();
    for (std::uint32_t i = 0; i < length(instructions); ++i) {
      error_ << "instruction " << i << ": ";
      if (const Status status = check_instruction(*instructions->Get(i), length(instructions));
          status != Status::ok) {
        return status;
      }
      error_.clear();
    }
  }
  state_.arguments = {pool_.take<Value*>(longest_call_), longest_call_};
  if (state_.arguments.data() == nullptr) {
    return fail(Status::out_of_memory, "the method pool is too small for ", longest_call_, " arguments");
  }
  return Status::ok;
}

Status MethodLoader::check_instruction(const schema::Instruction& instruction, std::uint32_t count) {
  if (instruction.instr_args() == nullptr) {
    return fail(Status::bad_program, "it has no content");
  }
  switch (instruction.instr_args_type()) {
    case schema::InstructionArguments::KernelCall: {
      const auto& call = *instruction.instr_args_as_KernelCall();
      return check_call("operator", call.op_index(), state_.operators.size(), call.args());
    }
    case schema::InstructionArguments::DelegateCall: {
      const auto& call = *instruction.instr_args_as_DelegateCall();
      return check_call("delegate", call.delegate_index(), length(state_.plan->delegates()), call.args());
    }
    case schema::InstructionArguments::MoveCall: {
      const auto& move = *instruction.instr_args_as_MoveCall();
      const Status status = check_value_index("its source", move.move_from());
      return status == Status::ok ? check_value_index("its destination", move.move_to()) : status;
    }
    case schema::InstructionArguments::JumpFalseCall: {
      const auto& jump = *instruction.instr_args_as_JumpFalseCall();
      if (jump.destination_instruction() < 0 ||
          static_cast<std::uint32_t>(jump.destination_instruction()) > count) {
        return fail(Status::bad_program, "it jumps to ", jump.destination_instruction(), " of ", count);
      }
      return check_value_index("its condition", jump.cond_value_index());
    }
    case schema::InstructionArguments::FreeCall:
      return check_value_index("its tensor", instruction.instr_args_as_FreeCall()->value_index());
    case schema::InstructionArguments::NONE:
    default:
      return fail(Status::bad_program, "unknown kind ", static_cast<unsigned>(instruction.instr_args_type()));
  }
}

Status MethodLoader::check_call(const char* what, std::int32_t callee, std::size_t callees,
                                const flatbuffers::Vector<std::int32_t>* arguments) {
  if (callee < 0 || static_cast<std::size_t>(callee) >= callees) {
    return fail(Status::bad_program, "it calls ", what, " ", callee, " of ", callees);
  }
  if (length(arguments) > longest_call_) {
    longest_call_ = length(arguments);
  }
  return check_value_indices("an argument", arguments);
}

Status MethodLoader::load_delegates(Delegate* delegate) {
  state_.delegate = delegate;
  for (std::uint32_t i = 0; i < length(state_.plan->delegates()); ++i) {
    error_ << "delegate " << i << ": ";
    if (const Status status = load_delegate(i, delegate); status != Status::ok) {
      return status;
    }
    error_.clear();
  }
  return Status::ok;
}

Status MethodLoader::load_delegate(std::uint32_t index, Delegate* delegate) {
  const schema::BackendDelegate& row = *state_.plan->delegates()->Get(index);
  const char* const backend = text_of(row.id());
  if (delegate == nullptr || std::strcmp(delegate->backend_id(), backend) != 0) {
    return fail(Status::missing_delegate, "no backend '", backend, "'");
  }
  Span<const std::uint8_t> payload;
  if (const Status status = state_.file.payload(row, payload, error_); status != Status::ok) {
    return status;
  }
  const Status status = delegate->init(index, payload, ProgramBlobs(state_.file));
  return status == Status::ok ? status : fail(status, delegate->error_text());
}

}  // namespace ethosu_sdk::runtime
