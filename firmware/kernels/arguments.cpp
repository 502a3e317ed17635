#include "kernels/arguments.hpp"

namespace ethosu_sdk::kernels {

Arguments::Arguments(KernelContext& context, Span<Value* const> values, std::size_t schema_count)
    : context_(context), values_(values) {
  if (values.size() != schema_count && values.size() != schema_count + 1) {
    fail(Status::invalid_argument, values.size(), " arguments, the operator has ", schema_count);
  }
}

Status Arguments::wrong_kind(std::size_t index, const char* wanted, const Value& found) {
  return fail(Status::invalid_argument, "argument ", index, " is ", value_kind_name(found.kind), ", not ",
              wanted);
}

const Value& Arguments::value(std::size_t index, ValueKind kind) {
  if (!ok()) {
    return no_value_;
  }
  const Value& found = *values_[index];
  if (!found.is(kind)) {
    wrong_kind(index, value_kind_name(kind), found);
    return no_value_;
  }
  return found;
}

bool Arguments::is_none(std::size_t index) const {
  return !ok() || values_[index]->is(ValueKind::none);
}

const Tensor& Arguments::tensor(std::size_t index) {
  const Value& found = value(index, ValueKind::tensor);
  return ok() ? *found.tensor : no_tensor_;
}

const Tensor* Arguments::optional_tensor(std::size_t index) {
  return is_none(index) ? nullptr : &tensor(index);
}

Tensor& Arguments::output(std::size_t index) {
  const Value& found = value(index, ValueKind::tensor);
  if (ok() && found.tensor->constant) {
    fail(Status::invalid_argument, "output ", index, " is a constant");
  }
  return ok() ? *found.tensor : no_tensor_;
}

std::int64_t Arguments::integer(std::size_t index) {
  const Value& found = value(index, ValueKind::integer);
  return ok() ? found.integer : 0;
}

std::int64_t Arguments::integer_or(std::size_t index, std::int64_t fallback) {
  return is_none(index) ? fallback : integer(index);
}

bool Arguments::boolean(std::size_t index) {
  const Value& found = value(index, ValueKind::boolean);
  return ok() && found.boolean;
}

double Arguments::real(std::size_t index) {
  const Scalar found = scalar(index);
  return found.real;
}

Scalar Arguments::scalar(std::size_t index) {
  if (!ok()) {
    return {};
  }
  const Value& found = *values_[index];
  switch (found.kind) {
    case ValueKind::integer:
      return {ScalarType::int64, found.integer, static_cast<double>(found.integer)};
    case ValueKind::boolean:
      return {ScalarType::boolean, found.boolean ? 1 : 0, found.boolean ? 1.0 : 0.0};
    case ValueKind::real:
      return {ScalarType::float64, 0, found.real};
    default:
      wrong_kind(index, "a number", found);
      return {};
  }
}

ScalarType Arguments::scalar_type_or(std::size_t index, ScalarType fallback) {
  if (is_none(index)) {
    return fallback;
  }
  const std::int64_t number = integer(index);
  if (!fits<std::int8_t>(number) || element_bytes(static_cast<ScalarType>(number)) == 0) {
    fail(Status::unsupported_argument, "argument ", index, " names scalar type ", number);
    return fallback;
  }
  return static_cast<ScalarType>(number);
}

std::size_t Arguments::integers(std::size_t index, std::int64_t* items, std::size_t capacity) {
  const Value& list = value(index, ValueKind::integer_list);
  if (!ok()) {
    return 0;
  }
  if (list.item_count > capacity) {
    fail(Status::invalid_argument, "argument ", index, " has ", list.item_count, " items, at most ", capacity,
         " make sense");
    return 0;
  }
  for (std::uint32_t i = 0; i < list.item_count; ++i) {
    const Value& item = *list.values()[i];
    if (!item.is(ValueKind::integer)) {
      wrong_kind(index, "a list of integers", item);
      return 0;
    }
    items[i] = item.integer;
  }
  return list.item_count;
}

std::size_t Arguments::tensor_count(std::size_t index) {
  const Value& list = value(index, ValueKind::tensor_list);
  return ok() ? list.item_count : 0;
}

const Tensor& Arguments::list_tensor(std::size_t index, std::size_t item) {
  const Value& list = value(index, ValueKind::tensor_list);
  if (!ok()) {
    return no_tensor_;
  }
  const Value& found = *list.values()[item];
  if (!found.is(ValueKind::tensor)) {
    wrong_kind(index, "a list of tensors", found);
    return no_tensor_;
  }
  return *found.tensor;
}

std::size_t Arguments::dim(std::size_t index, std::size_t rank) {
  return checked_dim(integer(index), rank);
}

std::size_t Arguments::checked_dim(std::int64_t dim, std::size_t rank) {
  const auto dims = static_cast<std::int64_t>(rank == 0 ? 1 : rank);
  if (dim < -dims || dim >= dims) {
    fail(Status::invalid_argument, "dimension ", dim, " of a tensor of rank ", rank);
    return 0;
  }
  return static_cast<std::size_t>(dim < 0 ? dim + dims : dim);
}

Status Arguments::resize(Tensor& output, const std::int32_t* sizes, std::size_t rank) {
  if (!ok()) {
    return status_;
  }
  if (output.rank != rank) {
    return fail(Status::shape_mismatch, "the output has rank ", output.rank, ", the result ", rank);
  }
  std::uint64_t bytes = element_bytes(output.dtype);
  bool same = true;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto size = static_cast<std::uint64_t>(sizes[i] < 0 ? 0 : sizes[i]);
    same = same && sizes[i] == output.sizes[i];
    // Two factors below 2^32: no overflow. Bounded again in each step.
    bytes = bytes * size > output.capacity_bytes ? std::uint64_t{output.capacity_bytes} + 1 : bytes * size;
    if (!same && (!output.resizable || sizes[i] < 0)) {
      return fail(Status::shape_mismatch, "size ", i, " of the output is ", output.sizes[i],
                  ", of the result ", sizes[i]);
    }
  }
  if (!same && bytes > output.capacity_bytes) {
    return fail(Status::shape_mismatch, "the result does not fit the output's ", output.capacity_bytes,
                " bytes");
  }
  for (std::size_t i = 0; i < rank; ++i) {
    output.sizes[i] = sizes[i];
  }
  return Status::ok;
}

Status Arguments::expect_dtype(const Tensor& tensor, ScalarType dtype, const char* what) {
  if (ok() && tensor.dtype != dtype) {
    fail(Status::invalid_argument, what, " is ", scalar_type_name(tensor.dtype), ", not ",
         scalar_type_name(dtype));
  }
  return status_;
}

Status Arguments::expect_same_dim_order(const Tensor& left, const Tensor& right) {
  bool same = left.rank == right.rank;
  for (std::size_t i = 0; same && i < left.rank; ++i) {
    same = left.dim_order[i] == right.dim_order[i];
  }
  return same ? status_ : fail(Status::unsupported_argument, "tensors of different dim_order");
}

Status Arguments::expect_contiguous(const Tensor& tensor, const char* what) {
  return tensor.is_contiguous() ? status_ : fail(Status::unsupported_argument, what, " is not contiguous");
}

Status Arguments::unsupported_dtype(const Tensor& tensor) {
  return fail(Status::unsupported_argument, "this kernel does not compute ", scalar_type_name(tensor.dtype));
}

}  // namespace ethosu_sdk::kernels
