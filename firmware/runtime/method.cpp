#include "runtime/method.hpp"

#include "runtime/borders.hpp"
#include "runtime/executor.hpp"
#include "runtime/method_loader.hpp"
#include "runtime/pool.hpp"
#include "runtime/state.hpp"

namespace ethosu_sdk::runtime {

Status Method::load(Span<const std::uint8_t> pte, const char* name, const MemoryPlan& memory,
                    Span<const KernelEntry> kernels, Delegate* delegate, const DataFiles* data) {
  state_ = nullptr;
  pool_used_ = 0;
  error_.clear();
  if (reinterpret_cast<std::uintptr_t>(memory.method_pool.data()) % memory_alignment != 0) {
    error_ << "the method pool is not aligned to 16 bytes";
    return Status::invalid_argument;
  }
  Pool pool(memory.method_pool);
  auto* const state = pool.take<MethodState>(1);
  if (state == nullptr) {
    error_ << "the method pool is too small";
    return Status::out_of_memory;
  }
  Status status = state->file.open(pte, error_);
  if (status != Status::ok) {
    return status;
  }
  state->file.use(data);
  state->plan = state->file.find_plan(name);
  if (state->plan == nullptr) {
    error_ << "the program has no method '" << name << "'";
    return Status::method_not_found;
  }
  MethodLoader loader(*state, memory, pool, error_);
  status = loader.load_values();
  if (status == Status::ok) {
    status = loader.load_operators(kernels);
  }
  if (status == Status::ok) {
    status = loader.check_instructions();
  }
  if (status == Status::ok) {
    status = loader.load_delegates(delegate);
  }
  if (status == Status::ok) {
    Borders(*state).place();
  }
  pool_used_ = pool.used();
  state_ = status == Status::ok ? state : nullptr;
  return status;
}

std::uint32_t Method::input_count() const {
  return state_ == nullptr ? 0 : length(state_->plan->inputs());
}

std::uint32_t Method::output_count() const {
  return state_ == nullptr ? 0 : length(state_->plan->outputs());
}

std::uint32_t Method::delegate_count() const {
  return state_ == nullptr ? 0 : length(state_->plan->delegates());
}

const Value* Method::input_value(std::uint32_t index) const {
  return state_ == nullptr ? nullptr : state_->value_at(state_->plan->inputs(), index);
}

const Value* Method::output_value(std::uint32_t index) const {
  return state_ == nullptr ? nullptr : state_->value_at(state_->plan->outputs(), index);
}

Tensor* Method::input(std::uint32_t index) const {
  const Value* const value = input_value(index);
  return value != nullptr && value->is(ValueKind::tensor) ? value->tensor : nullptr;
}

Tensor* Method::output(std::uint32_t index) const {
  const Value* const value = output_value(index);
  return value != nullptr && value->is(ValueKind::tensor) ? value->tensor : nullptr;
}

Status Method::bind(Tensor& tensor, Span<std::uint8_t> memory) {
  error_.clear();
  if (memory.size() < tensor.byte_count()) {
    error_ << "the tensor needs " << tensor.byte_count() << " bytes, given are " << memory.size();
    return Status::out_of_memory;
  }
  if (reinterpret_cast<std::uintptr_t>(memory.data()) % memory_alignment != 0) {
    error_ << "the tensor's memory is not aligned to 16 bytes";
    return Status::invalid_argument;
  }
  tensor.data = memory.data();
  tensor.capacity_bytes = memory.size();
  return Status::ok;
}

Status Method::execute(InstructionObserver* observer) {
  error_.clear();
  if (state_ == nullptr) {
    error_ << "no method is loaded";
    return Status::invalid_state;
  }
  return Executor(*state_, observer, error_).run();
}

}  // namespace ethosu_sdk::runtime
