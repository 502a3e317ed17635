#include "runtime/data_files.hpp"

#include <cstring>

#include "flat_tensor_generated.h"
#include "runtime/bytes.hpp"
#include "runtime/method.hpp"

namespace ethosu_sdk::runtime {
namespace {

namespace schema = ::flat_tensor_flatbuffer;

// A file starts with the FlatBuffers root offset and "FT01"; then follows the header.
constexpr std::size_t identifier_offset = 4;
constexpr std::size_t header_offset = 8;
constexpr std::size_t header_bytes = 40;  // magic, length, start and size of the tables and of the segments
constexpr char magic[] = {'F', 'H', '0', '1'};
constexpr std::size_t max_file_bytes = 0x7FFFFFFF;  // FlatBuffers offsets are signed 32-bit numbers
constexpr flatbuffers::uoffset_t max_nesting = 8;   // FlatTensor to TensorLayout is 3
constexpr flatbuffers::uoffset_t max_tables = 1u << 20;

Status fail(ErrorText& reason, Status status, const char* text) {
  reason << text;
  return status;
}

template <typename Vector>
std::uint32_t length(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

}  // namespace

Status DataFiles::open(Span<const Span<const std::uint8_t>> files, ErrorText& reason) {
  count_ = 0;
  if (files.size() > max_files) {
    reason << files.size() << " data files, there is room for " << max_files;
    return Status::out_of_memory;
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    reason << "data file " << i << ": ";
    Status status = read_header(files[i], files_[i], reason);
    if (status == Status::ok) {
      status = check_tables(files_[i], reason);
    }
    if (status != Status::ok) {
      return status;
    }
    reason.clear();
  }
  count_ = files.size();
  return Status::ok;
}

Status DataFiles::read_header(Span<const std::uint8_t> file, File& found, ErrorText& reason) {
  const std::uint8_t* const bytes = file.data();
  if (reinterpret_cast<std::uintptr_t>(bytes) % memory_alignment != 0) {
    return fail(reason, Status::invalid_argument, "its address is not a multiple of 16");
  }
  if (file.size() < header_offset + header_bytes || file.size() > max_file_bytes ||
      std::memcmp(bytes + identifier_offset, schema::FlatTensorIdentifier(), 4) != 0 ||
      std::memcmp(bytes + header_offset, magic, sizeof magic) != 0) {
    return fail(reason, Status::bad_program, "no .ptd: its head is another one");
  }
  const std::uint8_t* const words = bytes + header_offset + 8;
  const auto length_bytes = little_endian<std::uint32_t>(bytes + header_offset + 4);
  const auto tables = little_endian<std::uint64_t>(words);
  const auto tables_bytes = little_endian<std::uint64_t>(words + 8);
  const auto base = little_endian<std::uint64_t>(words + 16);
  const auto segment_bytes = little_endian<std::uint64_t>(words + 24);
  const std::uint64_t size = file.size();
  if (length_bytes < header_bytes || tables < header_offset + header_bytes || tables > size ||
      tables_bytes > size - tables || base > size || segment_bytes > size - base) {
    reason << "its tables are " << tables_bytes << " bytes at " << tables << ", its segments "
           << segment_bytes << " bytes at " << base << ", the file has " << size;
    return Status::bad_program;
  }
  // The root offset counts from the file's start.
  found.tables = {bytes, static_cast<std::size_t>(tables + tables_bytes)};
  found.segments = {bytes + base, static_cast<std::size_t>(segment_bytes)};
  return Status::ok;
}

Status DataFiles::check_tables(const File& file, ErrorText& reason) {
  flatbuffers::Verifier verifier(file.tables.data(), file.tables.size(), max_nesting, max_tables);
  if (!schema::VerifyFlatTensorBuffer(verifier)) {
    return fail(reason, Status::bad_program, "its tables are damaged");
  }
  const schema::FlatTensor& root = *schema::GetFlatTensor(file.tables.data());
  if (root.version() != 0) {
    reason << "schema version " << root.version() << ", this runtime reads 0";
    return Status::unsupported_program;
  }
  const std::uint64_t available = file.segments.size();
  for (std::uint32_t i = 0; i < length(root.segments()); ++i) {
    const auto* const row = root.segments()->Get(i);
    if (row->offset() > available || row->size() > available - row->offset()) {
      reason << "segment " << i << " (offset " << row->offset() << ", " << row->size()
             << " bytes) reaches past the segments' end";
      return Status::bad_program;
    }
  }
  for (std::uint32_t i = 0; i < length(root.named_data()); ++i) {
    const auto* const row = root.named_data()->Get(i);
    if (row->key() == nullptr || row->segment_index() >= length(root.segments())) {
      reason << "named data " << i << " has no key or no segment";
      return Status::bad_program;
    }
  }
  return Status::ok;
}

bool DataFiles::find(const char* key, NamedBlob& blob) const {
  for (std::size_t i = 0; i < count_; ++i) {
    const schema::FlatTensor& root = *schema::GetFlatTensor(files_[i].tables.data());
    for (std::uint32_t k = 0; k < length(root.named_data()); ++k) {
      const auto* const row = root.named_data()->Get(k);
      if (std::strcmp(row->key()->c_str(), key) != 0) {
        continue;
      }
      const auto* const segment = root.segments()->Get(row->segment_index());
      blob = {};
      blob.bytes = {files_[i].segments.data() + segment->offset(), static_cast<std::size_t>(segment->size())};
      if (const auto* const layout = row->tensor_layout(); layout != nullptr) {
        blob.has_layout = true;
        blob.dtype = static_cast<ScalarType>(layout->scalar_type());
        blob.sizes = {length(layout->sizes()) == 0 ? nullptr : layout->sizes()->data(),
                      length(layout->sizes())};
        blob.dim_order = {length(layout->dim_order()) == 0 ? nullptr : layout->dim_order()->data(),
                          length(layout->dim_order())};
      }
      return true;
    }
  }
  return false;
}

}  // namespace ethosu_sdk::runtime
