#include "app/ethosu_delegate.hpp"

#include <algorithm>
#include <cstring>

#include "hal/marks.hpp"

namespace ethosu_sdk::app {
namespace {

constexpr std::uint8_t forgotten = 0xA5;

bool find_block(const void* blobs, const char* key, const std::uint8_t*& data, std::size_t& size) {
  Span<const std::uint8_t> bytes;
  const bool found = static_cast<const runtime::NamedBlobs*>(blobs)->find(key, bytes);
  data = bytes.data();
  size = bytes.size();
  return found;
}

void copy(void* to, const void* from, std::size_t bytes) {
  if (to != from) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace

template <typename... Pieces>
Status EthosUDelegate::refuse(const char* code, const Pieces&... pieces) {
  error_ = {};
  error_.code = code;
  write_all(error_.detail, pieces...);
  return Status::delegate_failed;
}

Status EthosUDelegate::refuse(const npu::Result& result) {
  const npu::ValueNames names = npu::value_names(result.code);
  if (names.expected == nullptr) {
    return refuse(npu::code_name(result.code), names.found, " ", Hex{result.found});
  }
  return refuse(npu::code_name(result.code), names.found, " ", Hex{result.found}, ", ", names.expected, " ",
                Hex{result.expected});
}

Status EthosUDelegate::init(std::uint32_t index, Span<const std::uint8_t> bytes,
                            const runtime::NamedBlobs& blobs) {
  if (index >= payloads_.size()) {
    return refuse("too_many_delegates", "delegate ", index, " of ", payloads_.size());
  }
  npu::Payload& payload = payloads_[index];
  if (const npu::Result result =
          npu::parse_payload(bytes.data(), bytes.size(), payload, {find_block, &blobs});
      !result.ok()) {
    return refuse(result);
  }
  if (const npu::Result result = driver_.check_stream(payload.config_word, payload.arch_word); !result.ok()) {
    return refuse(result);
  }
  if (payload.scratch_bytes > memory_.scratch.size()) {
    return refuse("scratch_too_small", "delegate ", index, " needs ", payload.scratch_bytes,
                  " bytes, the pool has ", memory_.scratch.size());
  }
  if (payload.scratch_bytes > scratch_used_) {
    scratch_used_ = payload.scratch_bytes;
  }
  return Status::ok;
}

Status EthosUDelegate::execute(std::uint32_t index, std::uint32_t instruction, Span<Value* const> arguments) {
  if (index >= payloads_.size()) {
    return refuse("too_many_delegates", "delegate ", index, " of ", payloads_.size());
  }
  const npu::Payload& payload = payloads_[index];
  if (const Status status = check_arguments(payload, arguments); status != Status::ok) {
    return status;
  }
  if (pieces_ != nullptr) {
    forget(payload, arguments);
  }
  hal::mark_copy_in();
  std::uint8_t* const scratch = memory_.scratch.data();
  for (std::uint32_t i = 0; i < payload.inputs.count; ++i) {
    const npu::Slot slot = payload.inputs.at(i);
    copy(scratch + slot.offset, arguments[i]->tensor->data, slot.bytes);
  }
  const Status ran =
      pieces_ == nullptr ? run_job(job_for(payload), instruction) : run_pieces(index, instruction);
  if (ran != Status::ok) {
    return ran;
  }
  hal::mark_copy_out();
  for (std::uint32_t i = 0; i < payload.outputs.count; ++i) {
    const npu::Slot slot = payload.outputs.at(i);
    copy(arguments[payload.inputs.count + i]->tensor->data, scratch + slot.offset, slot.bytes);
  }
  hal::mark_runtime();
  observer_.on_call();
  return Status::ok;
}

void* EthosUDelegate::place(std::uint32_t index, std::uint32_t position, std::size_t bytes) {
  const npu::Payload& payload = payloads_[index];
  const std::uint32_t inputs = payload.inputs.count;
  if (position >= inputs + payload.outputs.count) {
    return nullptr;
  }
  const npu::Slot slot =
      position < inputs ? payload.inputs.at(position) : payload.outputs.at(position - inputs);
  return slot.bytes == bytes ? memory_.scratch.data() + slot.offset : nullptr;
}

// Takes from memory what earlier calls left there: a piece that does not write would go unnoticed otherwise.
// Inputs that lie there stay.
void EthosUDelegate::forget(const npu::Payload& payload, Span<Value* const> arguments) {
  for (std::size_t at = 0; at < memory_.scratch.size();) {
    std::size_t next = memory_.scratch.size(), behind = next;
    for (std::uint32_t i = 0; i < payload.inputs.count; ++i) {
      const npu::Slot slot = payload.inputs.at(i);
      const bool lies_there = arguments[i]->tensor->data == memory_.scratch.data() + slot.offset;
      if (lies_there && slot.offset + slot.bytes > at && slot.offset < next) {
        next = std::max<std::size_t>(slot.offset, at);
        behind = slot.offset + slot.bytes;
      }
    }
    std::fill(memory_.scratch.begin() + at, memory_.scratch.begin() + next, forgotten);
    at = behind;
  }
  std::fill(memory_.fast_scratch.begin(), memory_.fast_scratch.end(), forgotten);
}

Status EthosUDelegate::run_pieces(std::uint32_t index, std::uint32_t instruction) {
  npu::Job job = job_for(payloads_[index]);
  for (std::uint32_t i = 0; i < pieces_->pieces(); ++i) {
    const StreamPiece piece = pieces_->piece(i);
    if (piece.delegate != index) {
      continue;
    }
    job.command_stream = piece.commands.data();
    job.command_bytes = static_cast<std::uint32_t>(piece.commands.size());
    if (const Status status = run_job(job, instruction); status != Status::ok) {
      return status;
    }
  }
  return Status::ok;
}

Status EthosUDelegate::run_job(const npu::Job& job, std::uint32_t instruction) {
  npu::Counters counters;
  if (const npu::Result result = driver_.run(job, timeout_ms_, counters); !result.ok()) {
    return refuse(result);
  }
  observer_.on_job(instruction, counters);
  return Status::ok;
}

// Every argument before anything is copied: a call runs whole or not at all.
Status EthosUDelegate::check_arguments(const npu::Payload& payload, Span<Value* const> arguments) {
  const std::size_t due = std::size_t{payload.inputs.count} + payload.outputs.count;
  if (arguments.size() != due) {
    return refuse("wrong_arguments", arguments.size(), " arguments, the command stream has ",
                  payload.inputs.count, " inputs and ", payload.outputs.count, " outputs");
  }
  for (std::uint32_t i = 0; i < arguments.size(); ++i) {
    const bool is_input = i < payload.inputs.count;
    const npu::Slot slot = is_input ? payload.inputs.at(i) : payload.outputs.at(i - payload.inputs.count);
    if (const Status status = check_slot(slot, *arguments[i], i, is_input); status != Status::ok) {
      return status;
    }
  }
  return Status::ok;
}

Status EthosUDelegate::check_slot(const npu::Slot& slot, const Value& value, std::size_t argument,
                                  bool is_input) {
  const Tensor* const tensor = value.is(ValueKind::tensor) ? value.tensor : nullptr;
  if (tensor == nullptr || tensor->data == nullptr) {
    return refuse("wrong_arguments", "argument ", argument, " is not a tensor with memory");
  }
  if (tensor->constant && !is_input) {
    return refuse("wrong_arguments", "argument ", argument, " is an output, but the program's constant");
  }
  if (tensor->byte_count() != slot.bytes) {
    return refuse("wrong_size", "argument ", argument, " has ", tensor->byte_count(),
                  " bytes, the command stream ", slot.bytes);
  }
  return Status::ok;
}

npu::Job EthosUDelegate::job_for(const npu::Payload& payload) const {
  npu::Job job{};
  job.command_stream = payload.command_stream;
  job.command_bytes = payload.command_bytes;
  job.config_word = payload.config_word;
  job.arch_word = payload.arch_word;
  job.bases[0] = payload.weights;
  job.bases[1] = memory_.scratch.data();
  job.bases[2] = memory_.fast_scratch.data();
  job.region_count = memory_.fast_scratch.size() == 0 ? 2 : 3;
  return job;
}

}  // namespace ethosu_sdk::app
