// Builds programs, above all such as no exporter writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program_generated.h"

namespace ethosu_sdk::host {

namespace schema = ::executorch_flatbuffer;

struct TensorRow {
  std::vector<std::int32_t> sizes = {4};
  std::vector<std::uint8_t> dim_order = {0};
  schema::ScalarType dtype = schema::ScalarType::FLOAT;
  std::int32_t storage_offset = 0;
  std::uint32_t memory_id = 1;  // 0: no place in a planned buffer
  std::uint32_t offset_low = 0;
  std::uint32_t offset_high = 0;
  std::uint32_t data_buffer = 0;
  schema::TensorShapeDynamism dynamism = schema::TensorShapeDynamism::STATIC;
  schema::TensorDataLocation location = schema::TensorDataLocation::SEGMENT;
  const char* name = "weight";  // of external data
  schema::DeviceType device = schema::DeviceType::CPU;
};

struct Segment {
  std::uint64_t offset = 0;
  std::uint64_t size = 16;
};

// A program of one method, "forward". The file's segments hold 64 bytes: 0, 1, 2, …
class ProgramBuilder {
 public:
  // Each returns the value's index.
  std::int32_t tensor(const TensorRow& row);
  std::int32_t none();
  std::int32_t integer(std::int64_t number);
  std::int32_t boolean(bool flag);
  std::int32_t integers(const std::vector<std::int64_t>& items);
  std::int32_t tensors(const std::vector<std::int32_t>& items);
  std::int32_t optional_tensors(const std::vector<std::int32_t>& items);
  std::int32_t value_of_kind(std::uint8_t kind, bool with_content);  // any number

  void call(std::int32_t op_index, const std::vector<std::int32_t>& arguments);
  void call_delegate(std::int32_t index, const std::vector<std::int32_t>& arguments);
  void move(std::int32_t from, std::int32_t to);
  void jump_if_false(std::int32_t condition, std::int32_t destination);
  void free(std::int32_t value);
  void instruction_of_kind(std::uint8_t kind);  // any number, without content

  void add_operator(const char* name, const char* overload);
  void add_delegate(const char* id, schema::DataLocation location, std::uint32_t index);

  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> outputs;
  std::vector<std::int64_t> planned = {0, 64};
  std::uint32_t version = 0;
  std::vector<Segment> segments = {{0, 16}, {16, 32}};
  std::vector<std::uint64_t> constant_offsets = {0, 0};        // in segment 0
  std::vector<std::uint64_t> initial_state_offsets = {0, 16};  // in segment 1
  bool extended_header = true;

  // The file; the builder is used up.
  std::vector<std::uint8_t> finish();

 private:
  template <typename Content>
  std::int32_t add_value(schema::KernelTypes kind, flatbuffers::Offset<Content> content);

  flatbuffers::FlatBufferBuilder fbb_;
  std::vector<flatbuffers::Offset<schema::EValue>> values_;
  std::vector<flatbuffers::Offset<schema::Instruction>> instructions_;
  std::vector<flatbuffers::Offset<schema::Operator>> operators_;
  std::vector<flatbuffers::Offset<schema::BackendDelegate>> delegates_;
};

}  // namespace ethosu_sdk::host
