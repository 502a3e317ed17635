#include "runtime/program_facts.hpp"

#include <cstring>

#include "runtime/program_file.hpp"

namespace ethosu_sdk::runtime {
namespace {

constexpr char default_method[] = "forward";
constexpr char flags_key[] = "compile_flags";

const schema::ExecutionPlan* choose_plan(const ProgramFile& file) {
  if (const auto* const plan = file.find_plan(default_method)) {
    return plan;
  }
  const auto* const plans = file.program().execution_plan();
  return length(plans) == 0 ? nullptr : file.find_plan(text_of(plans->Get(0)->name()));
}

Status read_planned(const schema::ExecutionPlan& plan, ProgramFacts& facts, ErrorText& reason) {
  const auto* const sizes = plan.non_const_buffer_sizes();
  const std::uint32_t count = length(sizes) == 0 ? 0 : length(sizes) - 1;  // ExecuTorch reserves the first
  if (!has_aligned_items(sizes)) {
    reason << "the sizes of the planned buffers are misaligned";
    return Status::bad_program;
  }
  if (count > max_planned_buffers) {
    reason << count << " planned buffers, this firmware has room for " << max_planned_buffers;
    return Status::unsupported_program;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int64_t size = sizes->Get(i + 1);
    if (size < 0 || size > INT32_MAX) {
      reason << "planned buffer " << i + 1 << " has " << size << " bytes";
      return Status::bad_program;
    }
    facts.planned_bytes[i] = static_cast<std::size_t>(size);
  }
  facts.planned_count = count;
  return Status::ok;
}

Span<const std::uint8_t> compile_flags(const schema::BackendDelegate& row) {
  const auto* const specs = row.compile_specs();
  for (std::uint32_t i = 0; i < length(specs); ++i) {
    const auto* const value = specs->Get(i)->value();
    if (std::strcmp(text_of(specs->Get(i)->key()), flags_key) == 0 && value != nullptr) {
      return {value->Data(), value->size()};
    }
  }
  return {};
}

}  // namespace

Status read_facts(Span<const std::uint8_t> pte, ProgramFacts& facts, DelegateReader& reader,
                  ErrorText& reason) {
  ProgramFile file;
  if (const Status status = file.open(pte, reason); status != Status::ok) {
    return status;
  }
  const schema::ExecutionPlan* const plan = choose_plan(file);
  if (plan == nullptr) {
    reason << "the program has no method that can be run";
    return Status::method_not_found;
  }
  facts.method = text_of(plan->name());
  facts.delegate_count = length(plan->delegates());
  if (const Status status = read_planned(*plan, facts, reason); status != Status::ok) {
    return status;
  }
  for (std::uint32_t i = 0; i < facts.delegate_count; ++i) {
    const schema::BackendDelegate& row = *plan->delegates()->Get(i);
    Span<const std::uint8_t> payload;
    if (const Status status = file.payload(row, payload, reason); status != Status::ok) {
      return status;
    }
    if (const Status status = reader.on_delegate(i, payload, compile_flags(row)); status != Status::ok) {
      return status;
    }
  }
  return Status::ok;
}

}  // namespace ethosu_sdk::runtime
