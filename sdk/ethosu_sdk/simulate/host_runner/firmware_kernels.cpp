// The firmware's kernels of `cortex_m::` operators, for ExecuTorch's runtime: its wheel has none of its own.
// build.py generates firmware_kernels.inc, the table of them.

#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_registry.h>

#include <cstdio>
#include <deque>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"

namespace {

using ethosu_sdk::Value;
using ethosu_sdk::ValueKind;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::KernelRuntimeContext;

struct Row {
  const char* name;
  ethosu_sdk::KernelFn function;
};

constexpr Row rows[] = {
#include "firmware_kernels.inc"
};
constexpr std::size_t row_count = sizeof rows / sizeof *rows;

// Arguments in the firmware's form; they refer to those of ExecuTorch.
class Arguments {
 public:
  explicit Arguments(executorch::runtime::Span<EValue*> stack) {
    for (EValue* value : stack) pointers_.push_back(&of(*value));
  }
  ethosu_sdk::Span<Value* const> values() const { return {pointers_.data(), pointers_.size()}; }

 private:
  Value& of(const EValue& value) {
    if (value.isTensor()) return of_tensor(value.toTensor());
    if (value.isIntList()) return of_list(value.toIntList());
    Value& made = add(ValueKind::none);
    if (value.isInt()) {
      made.kind = ValueKind::integer;
      made.integer = value.toInt();
    } else if (value.isBool()) {
      made.kind = ValueKind::boolean;
      made.boolean = value.toBool();
    } else if (value.isDouble()) {
      made.kind = ValueKind::real;
      made.real = value.toDouble();
    }
    return made;
  }

  Value& of_tensor(const executorch::aten::Tensor& from) {
    ethosu_sdk::Tensor& tensor = tensors_.emplace_back();
    tensor.data = const_cast<void*>(from.const_data_ptr());
    tensor.sizes = const_cast<std::int32_t*>(from.sizes().data());
    tensor.dim_order = from.dim_order().data();
    tensor.capacity_bytes = from.nbytes();
    tensor.dtype = static_cast<ethosu_sdk::ScalarType>(from.scalar_type());
    tensor.rank = static_cast<std::uint8_t>(from.dim());
    Value& made = add(ValueKind::tensor);
    made.tensor = &tensor;
    return made;
  }

  Value& of_list(executorch::aten::ArrayRef<std::int64_t> items) {
    std::vector<Value*>& list = lists_.emplace_back();
    for (const std::int64_t item : items) {
      list.push_back(&add(ValueKind::integer));
      list.back()->integer = item;
    }
    Value& made = add(ValueKind::integer_list);
    made.items = list.data();
    made.item_count = static_cast<std::uint32_t>(list.size());
    return made;
  }

  Value& add(ValueKind kind) {
    values_.emplace_back().kind = kind;
    return values_.back();
  }

  std::vector<Value*> pointers_;
  // Deques, because their elements stay where they are.
  std::deque<Value> values_;
  std::deque<ethosu_sdk::Tensor> tensors_;
  std::deque<std::vector<Value*>> lists_;
};

template <std::size_t index>
void call(KernelRuntimeContext& context, executorch::runtime::Span<EValue*> stack) {
  const Arguments arguments(stack);
  ethosu_sdk::ErrorText text;
  ethosu_sdk::KernelContext kernel(text);
  if (rows[index].function(kernel, arguments.values()) != ethosu_sdk::Status::ok) {
    std::fprintf(stderr, "%s: %s\n", rows[index].name, text.c_str());
    context.fail(Error::InvalidArgument);
  }
}

template <std::size_t... indices>
Error register_all(std::index_sequence<indices...>) {
  const executorch::runtime::Kernel kernels[] = {
      executorch::runtime::Kernel(rows[indices].name, &call<indices>)...};
  return executorch::runtime::register_kernels({kernels, row_count});
}

const Error registered = register_all(std::make_index_sequence<row_count>{});

}  // namespace
