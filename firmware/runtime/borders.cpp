#include "runtime/borders.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ethosu_sdk::runtime {
namespace {

constexpr std::uint32_t outputs_twice = 2;  // an output is a kernel's last argument and its result

constexpr char layout_copy[] = "dim_order_ops::_clone_dim_order.out";
// Kernels whose input and output may have different layouts.
constexpr const char* quantizers[] = {"quantized_decomposed::quantize_per_tensor.out",
                                      "cortex_m::quantize_per_tensor.out"};
constexpr const char* dequantizers[] = {"quantized_decomposed::dequantize_per_tensor.out",
                                        "cortex_m::dequantize_per_tensor.out"};

template <std::size_t size>
bool is_one_of(const char* name, const char* const (&names)[size]) {
  return std::any_of(names, names + size, [&](const char* other) { return std::strcmp(name, other) == 0; });
}

// Those that only read their inputs and write their output: no views, and nothing in place.
bool writes_output_alone(const char* name) {
  constexpr std::size_t suffix = 3;
  const std::size_t size = std::strlen(name);
  return size > suffix && std::strcmp(name + size - suffix, "out") == 0;
}

template <typename Vector>
bool holds(const Vector* items, std::int64_t value) {
  return items != nullptr && std::find(items->begin(), items->end(), value) != items->end();
}

}  // namespace

void Borders::place() {
  if (state_.delegate == nullptr || !is_straight()) {
    return;
  }
  std::uint32_t end = count();  // the first instruction that changes what the next delegate's places hold
  for (std::uint32_t at = count(); at-- > 0;) {
    const schema::DelegateCall* const call = instruction(at).instr_args_as_DelegateCall();
    if (call == nullptr) {
      continue;
    }
    std::uint32_t begin = at;  // behind the call before
    while (begin > 0 && instruction(begin - 1).instr_args_as_DelegateCall() == nullptr) {
      --begin;
    }
    place_outputs(*call, end);
    end = place_inputs(*call, begin, at);
  }
}

bool Borders::is_straight() {
  const auto* const chains = state_.plan->chains();
  if (length(chains) != 1 || chains->Get(0)->instructions() == nullptr) {
    return false;
  }
  instructions_ = chains->Get(0)->instructions();
  return std::all_of(instructions_->begin(), instructions_->end(), [](const schema::Instruction* row) {
    return row->instr_args_as_KernelCall() != nullptr || row->instr_args_as_DelegateCall() != nullptr;
  });
}

const char* Borders::kernel_name(std::uint32_t index) const {
  const auto& call = *instruction(index).instr_args_as_KernelCall();
  return state_.operators[static_cast<std::size_t>(call.op_index())].name;
}

Borders::Uses Borders::uses_of(std::int32_t value) const {
  Uses uses;
  for (std::uint32_t at = 0; at < count(); ++at) {
    const auto* const delegate = instruction(at).instr_args_as_DelegateCall();
    const auto* const arguments =
        delegate == nullptr ? instruction(at).instr_args_as_KernelCall()->args() : delegate->args();
    for (std::uint32_t i = 0; i < length(arguments); ++i) {
      if (arguments->Get(i) != value) {
        continue;
      }
      if (delegate != nullptr) {
        ++uses.delegates;
      } else if (i + outputs_twice >= arguments->size()) {
        uses.writers += uses.writer == at ? 0 : 1;
        uses.writer = at;
      } else {
        ++uses.readers;
        uses.dequantizers += is_one_of(kernel_name(at), dequantizers) ? 1 : 0;
        uses.are_plain = uses.are_plain && writes_output_alone(kernel_name(at));
        uses.last_reader = at;
      }
    }
  }
  return uses;
}

bool Borders::is_listed(std::int32_t value) const {
  const Value* const wanted = &state_.values[static_cast<std::size_t>(value)];
  return std::any_of(state_.values.begin(), state_.values.end(), [&](const Value& row) {
    const bool lists = row.is(ValueKind::tensor_list) || row.is(ValueKind::optional_tensor_list);
    return lists && std::find(row.values().begin(), row.values().end(), wanted) != row.values().end();
  });
}

// The tensor of a value of which no one but the instructions knows, or its caller if it is an input; nullptr
// for state, and for what has its memory from elsewhere.
Tensor* Borders::own_tensor(std::int32_t value, bool is_input) const {
  const Value& row = state_.values[static_cast<std::size_t>(value)];
  const auto* const stored = state_.plan->values()->Get(static_cast<std::uint32_t>(value))->val_as_Tensor();
  if (!row.is(ValueKind::tensor) || stored == nullptr || stored->allocation_info() == nullptr ||
      stored->data_buffer_idx() != 0 || stored->extra_tensor_info() != nullptr || row.tensor->resizable ||
      is_listed(value) || holds(state_.plan->outputs(), value) ||
      holds(state_.plan->inputs(), value) != is_input) {
    return nullptr;
  }
  return row.tensor;
}

// Places what the caller gives, or a kernel writes after `begin`, where the call before ended. Returns the
// first instruction that writes to such a place.
std::uint32_t Borders::place_inputs(const schema::DelegateCall& call, std::uint32_t begin, std::uint32_t at) {
  const auto delegate = static_cast<std::uint32_t>(call.delegate_index());
  std::uint32_t first = at;
  for (std::uint32_t i = 0; i < state_.delegate->inputs(delegate) && i < length(call.args()); ++i) {
    const std::int32_t value = call.args()->Get(i);
    const Uses uses = uses_of(value);
    const bool is_given = uses.writers == 0 && begin == 0;
    Tensor* const tensor = own_tensor(value, is_given);
    if (tensor == nullptr || uses.delegates != 1 || uses.readers != 0 ||
        !(is_given || is_written(uses, begin))) {
      continue;
    }
    void* const place = state_.delegate->place(delegate, i, tensor->byte_count());
    if (place != nullptr) {
      tensor->data = place;
      first = std::min(first, is_given ? 0 : skip_copy(*tensor, uses.writer, begin));
    }
  }
  return first;
}

bool Borders::is_written(const Uses& uses, std::uint32_t begin) const {
  return uses.writers == 1 && uses.writer >= begin && writes_output_alone(kernel_name(uses.writer));
}

// `writer` gives `placed`. If it only copies what a kernel writes that can write any layout, then that kernel
// writes it there, and is returned.
std::uint32_t Borders::skip_copy(const Tensor& placed, std::uint32_t writer, std::uint32_t begin) {
  if (std::strcmp(kernel_name(writer), layout_copy) != 0) {
    return writer;
  }
  const std::int32_t source = instruction(writer).instr_args_as_KernelCall()->args()->Get(0);
  const Uses uses = uses_of(source);
  Tensor* const tensor = own_tensor(source, false);
  if (tensor == nullptr || uses.delegates != 0 || uses.readers != 1 || !is_written(uses, begin) ||
      !is_one_of(kernel_name(uses.writer), quantizers)) {
    return writer;
  }
  lay(*tensor, placed);
  return uses.writer;
}

// Places what kernels read before `end`.
void Borders::place_outputs(const schema::DelegateCall& call, std::uint32_t end) {
  const auto delegate = static_cast<std::uint32_t>(call.delegate_index());
  const std::uint32_t inputs = state_.delegate->inputs(delegate);
  for (std::uint32_t i = inputs; inputs != 0 && i < length(call.args()); ++i) {
    const std::int32_t value = call.args()->Get(i);
    const Uses uses = uses_of(value);
    Tensor* const tensor = own_tensor(value, false);
    if (tensor == nullptr || uses.delegates != 1 || !is_only_read(uses, end)) {
      continue;
    }
    void* const place = state_.delegate->place(delegate, i, tensor->byte_count());
    if (place != nullptr) {
      tensor->data = place;
      skip_copies(value, *tensor, end);
    }
  }
}

bool Borders::is_only_read(const Uses& uses, std::uint32_t end) const {
  return uses.writers == 0 && uses.readers != 0 && uses.last_reader < end && uses.are_plain;
}

// Copies of `placed` to another layout are read where it lies if those who read them can read any layout.
void Borders::skip_copies(std::int32_t value, const Tensor& placed, std::uint32_t end) {
  for (std::uint32_t at = 0; at < count(); ++at) {
    const auto* const call = instruction(at).instr_args_as_KernelCall();
    if (call == nullptr || std::strcmp(kernel_name(at), layout_copy) != 0 || call->args()->Get(0) != value) {
      continue;
    }
    const std::int32_t copy = call->args()->Get(length(call->args()) - 1);
    const Uses uses = uses_of(copy);
    Tensor* const tensor = own_tensor(copy, false);
    if (tensor != nullptr && uses.delegates == 0 && uses.writers == 1 && uses.readers != 0 &&
        uses.last_reader < end && uses.dequantizers == uses.readers) {
      lay(*tensor, placed);
    }
  }
}

void Borders::lay(Tensor& tensor, const Tensor& placed) {
  tensor.data = placed.data;
  tensor.dim_order = placed.dim_order;
}

}  // namespace ethosu_sdk::runtime
