// The file around a program: header, FlatBuffers part and segments (ExecuTorch 1.5.1, schema/program.fbs and
// runtime/core of its headers).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/kernel_api.hpp"
#include "program_generated.h"
#include "runtime/data_files.hpp"

namespace ethosu_sdk::runtime {

namespace schema = ::executorch_flatbuffer;

class ProgramFile {
 public:
  // Checks the header and verifies the FlatBuffers part; the reason of a failure goes to `reason`.
  Status open(Span<const std::uint8_t> file, ErrorText& reason);

  // Where named data is looked for that the program does not hold; nullptr: nowhere.
  void use(const DataFiles* data) { data_ = data; }

  const schema::Program& program() const { return *program_; }

  // nullptr: the program has no method of that name, or the method has none of the tables it needs.
  const schema::ExecutionPlan* find_plan(const char* name) const;

  Status segment(std::uint32_t index, Span<const std::uint8_t>& bytes, ErrorText& reason) const;

  // `size` bytes at offset number `index` of a segment that holds many pieces.
  Status subsegment(const schema::SubsegmentOffsets* offsets, std::uint32_t index, std::size_t size,
                    Span<const std::uint8_t>& bytes, ErrorText& reason) const;

  // The payload of a delegate.
  Status payload(const schema::BackendDelegate& row, Span<const std::uint8_t>& bytes,
                 ErrorText& reason) const;

  // What the program itself, or else a data file, has under `key`.
  Status named_data(const char* key, NamedBlob& blob, ErrorText& reason) const;

 private:
  Status read_header(ErrorText& reason);

  Span<const std::uint8_t> file_;
  Span<const std::uint8_t> flatbuffer_;
  Span<const std::uint8_t> segments_;
  const schema::Program* program_ = nullptr;
  const DataFiles* data_ = nullptr;
};

// Vectors that a table lacks count as empty.
template <typename Vector>
std::uint32_t length(const Vector* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// FlatBuffers 2.0.8 verifies where a vector's length lies, not where its elements do: those of 8 bytes need
// more.
template <typename Scalar>
bool has_aligned_items(const flatbuffers::Vector<Scalar>* vector) {
  return length(vector) == 0 || reinterpret_cast<std::uintptr_t>(vector->Data()) % alignof(Scalar) == 0;
}

// Strings that a table lacks count as "".
inline const char* text_of(const flatbuffers::String* string) {
  return string == nullptr ? "" : string->c_str();
}

}  // namespace ethosu_sdk::runtime
