// What a loaded method consists of. All of it lies in the caller's pool.
#pragma once

#include <cstdint>

#include "runtime/method.hpp"
#include "runtime/program_file.hpp"

namespace ethosu_sdk::runtime {

struct Operator {
  KernelFn function;
  const char* name;  // with the overload, in the table of kernels
};

struct MethodState {
  ProgramFile file;
  const schema::ExecutionPlan* plan = nullptr;
  Span<Value> values;
  Value none;  // what list items of -1 mean
  Span<Operator> operators;
  Delegate* delegate = nullptr;
  Span<Value*> arguments;  // room for those of the longest call

  const Value* value_at(const flatbuffers::Vector<std::int32_t>* indices, std::uint32_t position) const {
    return position < length(indices) ? &values[static_cast<std::size_t>(indices->Get(position))] : nullptr;
  }
};

}  // namespace ethosu_sdk::runtime
