// What kernels and the runtime share: tensors, values, status codes and the shape of a kernel function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error_text.hpp"
#include "base/span.hpp"

namespace ethosu_sdk {

enum class Status : std::uint8_t {
  ok,
  bad_program,          // not a .pte, or one that contradicts itself
  unsupported_program,  // a valid .pte that uses what this runtime lacks
  method_not_found,
  out_of_memory,  // a pool or planned buffer is too small
  missing_kernel,
  missing_delegate,  // no delegate was given, or the program wants another backend
  delegate_failed,
  invalid_argument,  // wrong number, kind, dtype or value of arguments
  shape_mismatch,
  unsupported_argument,  // valid for the operator, not computed by this kernel
  missing_data,          // a tensor has no memory: an input that was not bound
  instruction_limit,     // the program jumps on and on
  invalid_state,         // execute() without a loaded method
};

// The name above, such as "bad_program".
const char* status_name(Status status);

// Values as in scalar_type.fbs (ExecuTorch 1.5.1), which are PyTorch's.
enum class ScalarType : std::int8_t {
  uint8 = 0,
  int8 = 1,
  int16 = 2,
  int32 = 3,
  int64 = 4,
  float16 = 5,
  float32 = 6,
  float64 = 7,
  boolean = 11,
  bfloat16 = 15,
  uint16 = 27,
  uint32 = 28,
  uint64 = 29,
};

// 0 for every type not listed above.
std::size_t element_bytes(ScalarType type);

// NumPy's name, such as "uint8" or "bool" ("bfloat16" by ml_dtypes); "unknown" for every type not listed
// above.
const char* scalar_type_name(ScalarType type);

constexpr std::size_t max_rank = 16;  // ExecuTorch's kTensorDimensionLimit

// A dense tensor. Element [i0, i1, …] lies where `dim_order` (outermost dimension first) says.
struct Tensor {
  void* data = nullptr;                     // aligned to element_bytes(); nullptr until it is bound
  std::int32_t* sizes = nullptr;            // `rank` of them, none negative
  const std::uint8_t* dim_order = nullptr;  // a permutation of 0 … rank - 1
  std::size_t capacity_bytes = 0;           // of the memory behind `data`
  ScalarType dtype = ScalarType::float32;
  std::uint8_t rank = 0;
  bool constant = false;   // lies in the program, which may be read-only memory
  bool resizable = false;  // DYNAMIC_BOUND: kernels may set other sizes that fit the capacity

  std::size_t element_count() const;
  std::size_t byte_count() const { return element_count() * element_bytes(dtype); }
  bool is_contiguous() const;  // dim_order is 0, 1, 2, …, but for dimensions of size 1

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

enum class ValueKind : std::uint8_t {
  none,
  integer,
  boolean,
  real,
  tensor,
  string,
  integer_list,
  real_list,
  boolean_list,
  tensor_list,
  optional_tensor_list,
};

// The kind's name, such as "integer_list".
const char* value_kind_name(ValueKind kind);

// ExecuTorch's EValue. Lists of integers and tensors hold other values, which instructions can change; they
// are valid pointers, but what they point to must be checked at use.
struct Value {
  ValueKind kind = ValueKind::none;
  union {
    std::int64_t integer = 0;
    bool boolean;
    double real;
    Tensor* tensor;
    const char* string;  // with NUL
    const void* items;   // Value* const (integer, tensor lists), double or std::uint8_t
  };
  std::uint32_t item_count = 0;

  bool is(ValueKind other) const { return kind == other; }
  // integer_list, tensor_list, optional_tensor_list
  Span<Value* const> values() const { return {static_cast<Value* const*>(items), item_count}; }
  // real_list
  Span<const double> reals() const { return {static_cast<const double*>(items), item_count}; }
  // boolean_list: 0 is false
  Span<const std::uint8_t> booleans() const { return {static_cast<const std::uint8_t*>(items), item_count}; }
};

// What a kernel gets beside its arguments: the place for the reason of a failure.
class KernelContext {
 public:
  explicit KernelContext(ErrorText& text) : text_(text) {}

  // Returns `status`; the pieces (text and numbers) become the reason.
  template <typename... Pieces>
  Status fail(Status status, const Pieces&... pieces) {
    (text_ << ... << pieces);
    return status;
  }

 private:
  ErrorText& text_;
};

// `arguments` are the operator's, in the schema's order, then the outputs; all Tensor arguments, also those
// in lists, have memory. The runtime has checked nothing else.
using KernelFn = Status (*)(KernelContext& context, Span<Value* const> arguments);

}  // namespace ethosu_sdk
