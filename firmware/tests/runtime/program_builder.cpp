#include "tests/runtime/program_builder.hpp"

#include <algorithm>
#include <cstring>

namespace ethosu_sdk::host {
namespace {

constexpr std::size_t segment_bytes = 64;
constexpr std::size_t header_bytes = 32;
constexpr std::size_t alignment = 16;

template <typename Number>
void write_at(std::vector<std::uint8_t>& file, std::size_t offset, Number number) {
  std::memcpy(file.data() + offset, &number, sizeof number);
}

// Moves the FlatBuffers part back and puts the extended header between its root offset and its tables.
std::vector<std::uint8_t> with_segments(const std::uint8_t* flatbuffer, std::size_t size) {
  std::vector<std::uint8_t> file(8 + header_bytes + 8, 0);  // keeps the tables' alignment of 16
  file.insert(file.end(), flatbuffer + 8, flatbuffer + size);
  file.resize((file.size() + alignment - 1) / alignment * alignment);
  const std::size_t shift = header_bytes + 8;
  std::uint32_t root = 0;
  std::memcpy(&root, flatbuffer, sizeof root);
  write_at(file, 0, root + static_cast<std::uint32_t>(shift));
  std::memcpy(file.data() + 4, flatbuffer + 4, 4);
  std::memcpy(file.data() + 8, "eh00", 4);
  write_at(file, 12, static_cast<std::uint32_t>(header_bytes));
  write_at(file, 16, static_cast<std::uint64_t>(size + shift));
  write_at(file, 24, static_cast<std::uint64_t>(file.size()));
  write_at(file, 32, static_cast<std::uint64_t>(segment_bytes));
  for (std::size_t i = 0; i < segment_bytes; ++i) {
    file.push_back(static_cast<std::uint8_t>(i));
  }
  return file;
}

}  // namespace

template <typename Content>
std::int32_t ProgramBuilder::add_value(schema::KernelTypes kind, flatbuffers::Offset<Content> content) {
  values_.push_back(schema::CreateEValue(fbb_, kind, content.Union()));
  return static_cast<std::int32_t>(values_.size() - 1);
}

std::int32_t ProgramBuilder::tensor(const TensorRow& row) {
  flatbuffers::Offset<schema::AllocationDetails> allocation;
  if (row.memory_id != 0) {
    allocation = schema::CreateAllocationDetails(fbb_, row.memory_id, row.offset_low, row.offset_high);
  }
  flatbuffers::Offset<schema::ExtraTensorInfo> extra;
  if (row.location != schema::TensorDataLocation::SEGMENT || row.device != schema::DeviceType::CPU) {
    extra = schema::CreateExtraTensorInfoDirect(fbb_, 0, row.name, row.location, row.device);
  }
  const auto sizes = fbb_.CreateVector(row.sizes);
  const auto dim_order = fbb_.CreateVector(row.dim_order);
  return add_value(schema::KernelTypes::Tensor,
                   schema::CreateTensor(fbb_, row.dtype, row.storage_offset, sizes, dim_order, false,
                                        row.data_buffer, allocation, 0, row.dynamism, extra));
}

std::int32_t ProgramBuilder::none() {
  return add_value(schema::KernelTypes::Null, schema::CreateNull(fbb_));
}

std::int32_t ProgramBuilder::integer(std::int64_t number) {
  return add_value(schema::KernelTypes::Int, schema::CreateInt(fbb_, number));
}

std::int32_t ProgramBuilder::boolean(bool flag) {
  return add_value(schema::KernelTypes::Bool, schema::CreateBool(fbb_, flag));
}

std::int32_t ProgramBuilder::integers(const std::vector<std::int64_t>& items) {
  return add_value(schema::KernelTypes::IntList, schema::CreateIntListDirect(fbb_, &items));
}

std::int32_t ProgramBuilder::tensors(const std::vector<std::int32_t>& items) {
  return add_value(schema::KernelTypes::TensorList, schema::CreateTensorListDirect(fbb_, &items));
}

std::int32_t ProgramBuilder::optional_tensors(const std::vector<std::int32_t>& items) {
  return add_value(schema::KernelTypes::OptionalTensorList,
                   schema::CreateOptionalTensorListDirect(fbb_, &items));
}

std::int32_t ProgramBuilder::value_of_kind(std::uint8_t kind, bool with_content) {
  const auto content = with_content ? schema::CreateNull(fbb_) : flatbuffers::Offset<schema::Null>();
  return add_value(static_cast<schema::KernelTypes>(kind), content);
}

void ProgramBuilder::call(std::int32_t op_index, const std::vector<std::int32_t>& arguments) {
  const auto content = schema::CreateKernelCallDirect(fbb_, op_index, &arguments);
  instructions_.push_back(
      schema::CreateInstruction(fbb_, schema::InstructionArguments::KernelCall, content.Union()));
}

void ProgramBuilder::call_delegate(std::int32_t index, const std::vector<std::int32_t>& arguments) {
  const auto content = schema::CreateDelegateCallDirect(fbb_, index, &arguments);
  instructions_.push_back(
      schema::CreateInstruction(fbb_, schema::InstructionArguments::DelegateCall, content.Union()));
}

void ProgramBuilder::move(std::int32_t from, std::int32_t to) {
  const auto content = schema::CreateMoveCall(fbb_, from, to);
  instructions_.push_back(
      schema::CreateInstruction(fbb_, schema::InstructionArguments::MoveCall, content.Union()));
}

void ProgramBuilder::jump_if_false(std::int32_t condition, std::int32_t destination) {
  const auto content = schema::CreateJumpFalseCall(fbb_, condition, destination);
  instructions_.push_back(
      schema::CreateInstruction(fbb_, schema::InstructionArguments::JumpFalseCall, content.Union()));
}

void ProgramBuilder::free(std::int32_t value) {
  const auto content = schema::CreateFreeCall(fbb_, value);
  instructions_.push_back(
      schema::CreateInstruction(fbb_, schema::InstructionArguments::FreeCall, content.Union()));
}

void ProgramBuilder::instruction_of_kind(std::uint8_t kind) {
  instructions_.push_back(schema::CreateInstruction(fbb_, static_cast<schema::InstructionArguments>(kind)));
}

void ProgramBuilder::add_operator(const char* name, const char* overload) {
  operators_.push_back(schema::CreateOperatorDirect(fbb_, name, overload));
}

void ProgramBuilder::add_delegate(const char* id, schema::DataLocation location, std::uint32_t index) {
  const auto data = schema::CreateBackendDelegateDataReference(fbb_, location, index);
  delegates_.push_back(schema::CreateBackendDelegateDirect(fbb_, id, data));
}

std::vector<std::uint8_t> ProgramBuilder::finish() {
  const std::vector chains = {schema::CreateChainDirect(fbb_, nullptr, nullptr, &instructions_)};
  const std::vector plans = {schema::CreateExecutionPlanDirect(
      fbb_, "forward", 0, &values_, &inputs, &outputs, &chains, &operators_, &delegates_, &planned)};
  std::vector<flatbuffers::Offset<schema::DataSegment>> rows;
  for (const Segment& segment : segments) {
    rows.push_back(schema::CreateDataSegment(fbb_, segment.offset, segment.size));
  }
  const std::vector<std::uint8_t> payload = {1, 2, 3};
  const std::vector inline_data = {schema::CreateBackendDelegateInlineDataDirect(fbb_, &payload)};
  const auto constants = schema::CreateSubsegmentOffsetsDirect(fbb_, 0, &constant_offsets);
  const std::vector states = {schema::CreateSubsegmentOffsetsDirect(fbb_, 1, &initial_state_offsets)};
  const std::vector named = {schema::CreateNamedDataDirect(fbb_, "weight", 1)};
  fbb_.Finish(schema::CreateProgramDirect(fbb_, version, &plans, nullptr, &inline_data, &rows, constants,
                                          &states, &named),
              schema::ProgramIdentifier());
  const std::uint8_t* const begin = fbb_.GetBufferPointer();
  return extended_header ? with_segments(begin, fbb_.GetSize())
                         : std::vector<std::uint8_t>(begin, begin + fbb_.GetSize());
}

}  // namespace ethosu_sdk::host
