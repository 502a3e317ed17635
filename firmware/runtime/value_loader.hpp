// Serialised values → Value and Tensor objects.
#pragma once

#include "runtime/method.hpp"
#include "runtime/pool.hpp"
#include "runtime/program_file.hpp"

namespace ethosu_sdk::runtime {

class ValueLoader {
 public:
  // `values` has one element for each of the plan's, and none is loaded yet. `none` is what list items of -1
  // mean (OptionalTensorList).
  ValueLoader(const ProgramFile& file, const schema::ExecutionPlan& plan, const MemoryPlan& memory,
              Pool& pool, Span<Value> values, Value& none)
      : file_(file), plan_(plan), memory_(memory), pool_(pool), values_(values), none_(none) {}

  // Checks the planned buffers against what the plan asks for.
  Status check_planned_buffers();
  Status load(std::uint32_t index);

  // Why the last call failed.
  const ErrorText& reason() const { return reason_; }

 private:
  template <typename... Pieces>
  Status fail(Status status, const Pieces&... pieces) {
    (reason_ << ... << pieces);
    return status;
  }

  template <typename Scalar>
  Status load_raw_list(Value& value, ValueKind kind, const flatbuffers::Vector<Scalar>* items);
  template <typename Index>
  Status load_value_list(Value& value, ValueKind kind, const flatbuffers::Vector<Index>* items);
  Status load_tensor(Value& value, const schema::Tensor& row);
  Status load_shape(Tensor& tensor, const schema::Tensor& row);
  Status load_dim_order(Tensor& tensor, const schema::Tensor& row);
  Status locate(Tensor& tensor, const schema::Tensor& row);
  Status locate_planned(Tensor& tensor, const schema::AllocationDetails& allocation);
  Status stored_bytes(const Tensor& tensor, const schema::Tensor& row, Span<const std::uint8_t>& bytes);
  Status named_bytes(const Tensor& tensor, const char* key, Span<const std::uint8_t>& bytes);
  std::uint64_t planned_bytes(std::uint32_t memory_id) const;

  const ProgramFile& file_;
  const schema::ExecutionPlan& plan_;
  const MemoryPlan& memory_;
  Pool& pool_;
  Span<Value> values_;
  Value& none_;
  ErrorText reason_;
};

}  // namespace ethosu_sdk::runtime
