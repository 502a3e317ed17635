#include "kernels/support/kernel_api.hpp"

namespace ethosu_sdk {
namespace {

struct TypeFacts {
  ScalarType type;
  std::uint8_t bytes;
  const char* name;
};

constexpr TypeFacts types[] = {
    {ScalarType::uint8, 1, "uint8"},     {ScalarType::int8, 1, "int8"},
    {ScalarType::int16, 2, "int16"},     {ScalarType::int32, 4, "int32"},
    {ScalarType::int64, 8, "int64"},     {ScalarType::float16, 2, "float16"},
    {ScalarType::float32, 4, "float32"}, {ScalarType::float64, 8, "float64"},
    {ScalarType::boolean, 1, "bool"},    {ScalarType::bfloat16, 2, "bfloat16"},
    {ScalarType::uint16, 2, "uint16"},   {ScalarType::uint32, 4, "uint32"},
    {ScalarType::uint64, 8, "uint64"},
};

const TypeFacts* find(ScalarType type) {
  for (const TypeFacts& row : types) {
    if (row.type == type) {
      return &row;
    }
  }
  return nullptr;
}

constexpr const char* status_names[] = {
    "ok",
    "bad_program",
    "unsupported_program",
    "method_not_found",
    "out_of_memory",
    "missing_kernel",
    "missing_delegate",
    "delegate_failed",
    "invalid_argument",
    "shape_mismatch",
    "unsupported_argument",
    "missing_data",
    "instruction_limit",
    "invalid_state",
};
static_assert(sizeof status_names / sizeof *status_names ==
              static_cast<std::size_t>(Status::invalid_state) + 1);

constexpr const char* kind_names[] = {
    "none",
    "integer",
    "boolean",
    "real",
    "tensor",
    "string",
    "integer_list",
    "real_list",
    "boolean_list",
    "tensor_list",
    "optional_tensor_list",
};
static_assert(sizeof kind_names / sizeof *kind_names ==
              static_cast<std::size_t>(ValueKind::optional_tensor_list) + 1);

}  // namespace

const char* status_name(Status status) {
  return status_names[static_cast<std::size_t>(status)];
}

const char* value_kind_name(ValueKind kind) {
  return kind_names[static_cast<std::size_t>(kind)];
}

std::size_t element_bytes(ScalarType type) {
  const TypeFacts* row = find(type);
  return row == nullptr ? 0 : row->bytes;
}

const char* scalar_type_name(ScalarType type) {
  const TypeFacts* row = find(type);
  return row == nullptr ? "unknown" : row->name;
}

std::size_t Tensor::element_count() const {
  std::size_t count = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    count *= static_cast<std::size_t>(sizes[i]);
  }
  return count;
}

bool Tensor::is_contiguous() const {
  std::size_t least = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::size_t dim = dim_order[i];
    if (sizes[dim] == 1) {
      continue;
    }
    if (dim < least) {
      return false;
    }
    least = dim;
  }
  return true;
}

}  // namespace ethosu_sdk
