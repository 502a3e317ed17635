#include "runtime/program_file.hpp"

#include <cstring>

#include "runtime/bytes.hpp"
#include "runtime/method.hpp"

namespace ethosu_sdk::runtime {
namespace {

// A file starts with the FlatBuffers root offset and "ET12"; then may follow the extended header.
constexpr std::size_t identifier_offset = 4;
constexpr std::size_t extended_header_offset = 8;
constexpr std::size_t extended_header_bytes =
    32;  // magic, length, program size, segment base, segment data size
constexpr std::size_t minimum_extended_bytes = 24;  // the segment data size is a later addition
constexpr char extended_magic[] = {'e', 'h', '0', '0'};

constexpr std::uint32_t supported_version = 0;
// FlatBuffers offsets are signed 32-bit numbers.
constexpr std::size_t max_flatbuffer_bytes = 0x7FFFFFFF;
constexpr flatbuffers::uoffset_t max_nesting = 16;  // Program to Frame, the deepest table, is 6
constexpr flatbuffers::uoffset_t max_tables = 1u << 20;

Status fail(ErrorText& reason, Status status, const char* text) {
  reason << text;
  return status;
}

}  // namespace

Status ProgramFile::open(Span<const std::uint8_t> file, ErrorText& reason) {
  file_ = file;
  if (reinterpret_cast<std::uintptr_t>(file.data()) % memory_alignment != 0) {
    return fail(reason, Status::invalid_argument, "the program's address is not a multiple of 16");
  }
  if (const Status status = read_header(reason); status != Status::ok) {
    return status;
  }
  flatbuffers::Verifier verifier(flatbuffer_.data(), flatbuffer_.size(), max_nesting, max_tables);
  if (!schema::VerifyProgramBuffer(verifier)) {
    return fail(reason, Status::bad_program, "the FlatBuffers part is damaged");
  }
  program_ = schema::GetProgram(flatbuffer_.data());
  if (program_->version() != supported_version) {
    reason << "schema version " << program_->version() << ", this runtime reads 0";
    return Status::unsupported_program;
  }
  if (length(program_->constant_buffer()) != 0) {
    return fail(reason, Status::unsupported_program,
                "constants inside the FlatBuffers part, which ExecuTorch stopped writing in 2024");
  }
  return Status::ok;
}

Status ProgramFile::read_header(ErrorText& reason) {
  const std::uint8_t* const bytes = file_.data();
  if (file_.size() < extended_header_offset || file_.size() > max_flatbuffer_bytes) {
    reason << "a file of " << file_.size() << " bytes is no .pte";
    return Status::bad_program;
  }
  if (std::memcmp(bytes + identifier_offset, schema::ProgramIdentifier(), 4) != 0) {
    return fail(reason, Status::bad_program, "no .pte: the identifier is not ET12");
  }
  flatbuffer_ = file_;
  segments_ = {};
  if (file_.size() < extended_header_offset + extended_header_bytes ||
      std::memcmp(bytes + extended_header_offset, extended_magic, sizeof extended_magic) != 0) {
    return Status::ok;  // no segments
  }
  const std::uint8_t* const header = bytes + extended_header_offset;
  const auto header_bytes = little_endian<std::uint32_t>(header + 4);
  const auto program_bytes = little_endian<std::uint64_t>(header + 8);
  const auto segment_base = little_endian<std::uint64_t>(header + 16);
  auto segment_bytes = std::uint64_t{0};
  if (header_bytes < minimum_extended_bytes || program_bytes > file_.size() || segment_base > file_.size()) {
    reason << "extended header of " << header_bytes << " bytes: program of " << program_bytes
           << " bytes, segments from " << segment_base << ", file of " << file_.size();
    return Status::bad_program;
  }
  if (segment_base != 0) {
    segment_bytes = file_.size() - segment_base;
  }
  if (header_bytes >= extended_header_bytes && segment_base != 0) {
    const auto declared = little_endian<std::uint64_t>(header + 24);
    if (declared > segment_bytes) {
      reason << "the file is cut: " << declared << " bytes of segments declared, " << segment_bytes
             << " found";
      return Status::bad_program;
    }
  }
  flatbuffer_ = {bytes, static_cast<std::size_t>(program_bytes)};
  segments_ = {bytes + segment_base, static_cast<std::size_t>(segment_bytes)};
  return Status::ok;
}

const schema::ExecutionPlan* ProgramFile::find_plan(const char* name) const {
  const auto* const plans = program_->execution_plan();
  for (std::uint32_t i = 0; i < length(plans); ++i) {
    const auto* const plan = plans->Get(i);
    if (std::strcmp(text_of(plan->name()), name) == 0) {
      return plan;
    }
  }
  return nullptr;
}

Status ProgramFile::segment(std::uint32_t index, Span<const std::uint8_t>& bytes, ErrorText& reason) const {
  if (index >= length(program_->segments())) {
    reason << "segment " << index << " does not exist";
    return Status::bad_program;
  }
  const auto* const row = program_->segments()->Get(index);
  if (row->offset() > segments_.size() || row->size() > segments_.size() - row->offset()) {
    reason << "segment " << index << " (offset " << row->offset() << ", " << row->size()
           << " bytes) reaches past the file's end";
    return Status::bad_program;
  }
  bytes = {segments_.data() + row->offset(), static_cast<std::size_t>(row->size())};
  return Status::ok;
}

Status ProgramFile::subsegment(const schema::SubsegmentOffsets* offsets, std::uint32_t index,
                               std::size_t size, Span<const std::uint8_t>& bytes, ErrorText& reason) const {
  if (offsets == nullptr || index >= length(offsets->offsets()) || !has_aligned_items(offsets->offsets())) {
    reason << "data buffer " << index << " does not exist";
    return Status::bad_program;
  }
  Span<const std::uint8_t> whole;
  if (const Status status = segment(offsets->segment_index(), whole, reason); status != Status::ok) {
    return status;
  }
  const std::uint64_t offset = offsets->offsets()->Get(index);
  if (offset > whole.size() || size > whole.size() - offset) {
    reason << "data buffer " << index << " (offset " << offset << ", " << size
           << " bytes) reaches past segment " << offsets->segment_index();
    return Status::bad_program;
  }
  bytes = {whole.data() + offset, size};
  return Status::ok;
}

Status ProgramFile::payload(const schema::BackendDelegate& row, Span<const std::uint8_t>& bytes,
                            ErrorText& reason) const {
  if (row.processed() == nullptr) {
    reason << "it has no payload";
    return Status::bad_program;
  }
  const std::uint32_t index = row.processed()->index();
  if (row.processed()->location() == schema::DataLocation::SEGMENT) {
    return segment(index, bytes, reason);
  }
  const auto* const inline_data = program_->backend_delegate_data();
  if (row.processed()->location() != schema::DataLocation::INLINE || index >= length(inline_data)) {
    reason << "payload " << index << " does not exist";
    return Status::bad_program;
  }
  const auto* const data = inline_data->Get(index)->data();
  bytes = {data == nullptr ? nullptr : data->Data(), length(data)};
  return Status::ok;
}

Status ProgramFile::named_data(const char* key, NamedBlob& blob, ErrorText& reason) const {
  const auto* const rows = program_->named_data();
  for (std::uint32_t i = 0; i < length(rows); ++i) {
    if (std::strcmp(text_of(rows->Get(i)->key()), key) == 0) {
      blob = {};
      return segment(rows->Get(i)->segment_index(), blob.bytes, reason);
    }
  }
  if (data_ != nullptr && data_->find(key, blob)) {
    return Status::ok;
  }
  reason << "the data of '" << key << "' is neither in the program nor in a data file";
  return Status::unsupported_program;
}

}  // namespace ethosu_sdk::runtime
