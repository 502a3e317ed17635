// A kernel's arguments, checked. The first failure sticks: read all arguments, then ask ok() once, and use
// what was read only if it says true.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/support/kernel_api.hpp"

namespace ethosu_sdk::kernels {

// PyTorch's Scalar: an integer, a real number or a bool.
struct Scalar {
  ScalarType type = ScalarType::int64;  // int64, float64 or boolean
  std::int64_t integer = 0;             // also of a bool
  double real = 0;                      // of every type

  bool is_real() const { return type == ScalarType::float64; }
};

class Arguments {
 public:
  // `schema_count` is the number of the operator's parameters, its outputs included. ExecuTorch passes them
  // and then what the operator returns: the one output again, or a list of the outputs.
  Arguments(KernelContext& context, Span<Value* const> values, std::size_t schema_count);

  bool ok() const { return status_ == Status::ok; }
  Status status() const { return status_; }

  template <typename... Pieces>
  Status fail(Status status, const Pieces&... pieces) {
    if (ok()) {
      status_ = context_.fail(status, pieces...);
    }
    return status_;
  }

  bool is_none(std::size_t index) const;
  bool is_tensor(std::size_t index) const;
  bool is_integer(std::size_t index) const;
  const Tensor& tensor(std::size_t index);
  const Tensor* optional_tensor(std::size_t index);
  Tensor& output(std::size_t index);  // writable
  std::int64_t integer(std::size_t index);
  std::int64_t integer_or(std::size_t index, std::int64_t fallback);  // `fallback` for none
  bool boolean(std::size_t index);
  double real(std::size_t index);  // integers too: PyTorch writes 1.0 as it likes
  Scalar scalar(std::size_t index);
  ScalarType scalar_type_or(std::size_t index, ScalarType fallback);
  const char* text(std::size_t index);

  // The integers of a list, which must fit `capacity`; returns how many.
  std::size_t integers(std::size_t index, std::int64_t* items, std::size_t capacity);
  std::size_t reals(std::size_t index, double* items, std::size_t capacity);
  // One by one, for lists of any length; each item is checked at access.
  std::size_t integer_count(std::size_t index);
  std::int64_t list_integer(std::size_t index, std::size_t item);
  // Tensors of a list; each item is checked at access.
  std::size_t tensor_count(std::size_t index);
  const Tensor& list_tensor(std::size_t index, std::size_t item);
  Tensor& list_output(std::size_t index, std::size_t item);  // writable
  // Of optional tensors too; nullptr for none.
  std::size_t optional_tensor_count(std::size_t index);
  const Tensor* optional_list_tensor(std::size_t index, std::size_t item);

  // The Value that receives a number: one that is no tensor, list or text.
  Value& result(std::size_t index);

  // A dimension number of a tensor of `rank`, negative ones counted from the end. PyTorch lets a tensor
  // without dimensions have one.
  std::size_t dim(std::size_t index, std::size_t rank);
  std::size_t checked_dim(std::int64_t dim, std::size_t rank);
  // The same of a list of dimensions: notes it among those that were seen, where it must not be yet.
  std::size_t another_dim(std::int64_t dim, std::size_t rank, bool (&seen)[max_rank]);

  // Gives the output these sizes: they are what it has, or it can be resized and is no input as well, whose
  // sizes the kernel has looked at.
  Status resize(Tensor& output, const std::int32_t* sizes, std::size_t rank);
  Status resize_like(Tensor& output, const Tensor& model) { return resize(output, model.sizes, model.rank); }

  Status expect_dtype(const Tensor& tensor, ScalarType dtype, const char* what);
  // Dimensions of size 1 may stand anywhere: they move no element.
  Status expect_same_dim_order(const Tensor& left, const Tensor& right);
  Status expect_contiguous(const Tensor& tensor, const char* what);
  Status unsupported_dtype(const Tensor& tensor);

 private:
  const Value& value(std::size_t index, ValueKind kind);
  Status wrong_kind(std::size_t index, const char* wanted, const Value& found);
  Tensor& list_item(std::size_t index, std::size_t item);
  bool is_input(const Tensor& tensor) const;

  KernelContext& context_;
  Span<Value* const> values_;
  Status status_ = Status::ok;
  std::size_t first_output_;  // the least of those that were asked for
  Tensor no_tensor_;          // what a failed read returns
  Value no_value_;
};

// A list of sizes with one -1 at most, which becomes what the others leave of the tensor's elements. Returns
// how many sizes.
std::size_t read_view_sizes(Arguments& arguments, std::size_t index, const Tensor& input,
                            std::int32_t (&sizes)[max_rank]);

// Whether `value`, an integer out of a program, is one of Integer's values.
template <typename Integer>
bool fits(std::int64_t value) {
  return value >= std::int64_t{std::numeric_limits<Integer>::min()} &&
         value <= std::int64_t{std::numeric_limits<Integer>::max()};
}

}  // namespace ethosu_sdk::kernels
