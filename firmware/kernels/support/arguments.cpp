#include "kernels/support/arguments.hpp"

#include <algorithm>

namespace ethosu_sdk::kernels {
namespace {

constexpr std::uint64_t max_partial = 0x7FFFFFFF;

}  // namespace

Arguments::Arguments(KernelContext& context, Span<Value* const> values, std::size_t schema_count)
    : context_(context), values_(values), first_output_(values.size()) {
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

bool Arguments::is_tensor(std::size_t index) const {
  return ok() && values_[index]->is(ValueKind::tensor);
}

bool Arguments::is_integer(std::size_t index) const {
  return ok() && values_[index]->is(ValueKind::integer);
}

const Tensor& Arguments::tensor(std::size_t index) {
  const Value& found = value(index, ValueKind::tensor);
  return ok() ? *found.tensor : no_tensor_;
}

const Tensor* Arguments::optional_tensor(std::size_t index) {
  return is_none(index) ? nullptr : &tensor(index);
}

Tensor& Arguments::output(std::size_t index) {
  first_output_ = std::min(first_output_, index);
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

const char* Arguments::text(std::size_t index) {
  const Value& found = value(index, ValueKind::string);
  return ok() ? found.string : "";
}

std::size_t Arguments::integer_count(std::size_t index) {
  const Value& list = value(index, ValueKind::integer_list);
  return ok() ? list.item_count : 0;
}

std::int64_t Arguments::list_integer(std::size_t index, std::size_t item) {
  const Value& list = value(index, ValueKind::integer_list);
  if (!ok()) {
    return 0;
  }
  const Value& found = *list.values()[item];
  if (!found.is(ValueKind::integer)) {
    wrong_kind(index, "a list of integers", found);
    return 0;
  }
  return found.integer;
}

std::size_t Arguments::integers(std::size_t index, std::int64_t* items, std::size_t capacity) {
  const std::size_t count = integer_count(index);
  if (count > capacity) {
    fail(Status::invalid_argument, "argument ", index, " has ", count, " items, at most ", capacity,
         " make sense");
    return 0;
  }
  for (std::size_t i = 0; i < count; ++i) {
    items[i] = list_integer(index, i);
  }
  return ok() ? count : 0;
}

std::size_t Arguments::reals(std::size_t index, double* items, std::size_t capacity) {
  const Value& list = value(index, ValueKind::real_list);
  if (ok() && list.item_count > capacity) {
    fail(Status::invalid_argument, "argument ", index, " has ", list.item_count, " items, at most ", capacity,
         " make sense");
  }
  if (!ok()) {
    return 0;
  }
  for (std::uint32_t i = 0; i < list.item_count; ++i) {
    items[i] = list.reals()[i];
  }
  return list.item_count;
}

std::size_t Arguments::tensor_count(std::size_t index) {
  const Value& list = value(index, ValueKind::tensor_list);
  return ok() ? list.item_count : 0;
}

Tensor& Arguments::list_item(std::size_t index, std::size_t item) {
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

const Tensor& Arguments::list_tensor(std::size_t index, std::size_t item) {
  return list_item(index, item);
}

Tensor& Arguments::list_output(std::size_t index, std::size_t item) {
  first_output_ = std::min(first_output_, index);
  Tensor& found = list_item(index, item);
  if (ok() && found.constant) {
    fail(Status::invalid_argument, "output ", item, " is a constant");
  }
  return ok() ? found : no_tensor_;
}

std::size_t Arguments::optional_tensor_count(std::size_t index) {
  if (ok() && values_[index]->is(ValueKind::tensor_list)) {
    return values_[index]->item_count;
  }
  const Value& list = value(index, ValueKind::optional_tensor_list);
  return ok() ? list.item_count : 0;
}

const Tensor* Arguments::optional_list_tensor(std::size_t index, std::size_t item) {
  if (item >= optional_tensor_count(index) || !ok()) {
    return nullptr;
  }
  const Value& found = *values_[index]->values()[item];
  if (found.is(ValueKind::none)) {
    return nullptr;
  }
  if (!found.is(ValueKind::tensor)) {
    wrong_kind(index, "a list of tensors", found);
    return nullptr;
  }
  return found.tensor;
}

Value& Arguments::result(std::size_t index) {
  if (!ok()) {
    return no_value_;
  }
  Value& found = *values_[index];
  const bool is_number = found.is(ValueKind::none) || found.is(ValueKind::integer) ||
                         found.is(ValueKind::boolean) || found.is(ValueKind::real);
  if (!is_number) {
    wrong_kind(index, "a number", found);
  }
  return is_number ? found : no_value_;
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

std::size_t Arguments::another_dim(std::int64_t dim, std::size_t rank, bool (&seen)[max_rank]) {
  const std::size_t checked = checked_dim(dim, rank);
  if (seen[checked]) {
    fail(Status::invalid_argument, "dimension ", checked, " twice");
  }
  seen[checked] = true;
  return checked;
}

Status Arguments::resize(Tensor& output, const std::int32_t* sizes, std::size_t rank) {
  if (!ok()) {
    return status_;
  }
  if (output.rank != rank) {
    return fail(Status::shape_mismatch, "the output has rank ", output.rank, ", the result ", rank);
  }
  std::uint64_t bytes = element_bytes(output.dtype);
  std::uint64_t partial = 1;  // of sizes other than 0: what strides are made of
  bool same = true;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto size = static_cast<std::uint64_t>(sizes[i] < 0 ? 0 : sizes[i]);
    same = same && sizes[i] == output.sizes[i];
    // Two factors below 2^32: no overflow. Bounded again in each step.
    bytes = bytes * size > output.capacity_bytes ? std::uint64_t{output.capacity_bytes} + 1 : bytes * size;
    partial =
        partial * (size == 0 ? 1 : size) > max_partial ? max_partial + 1 : partial * (size == 0 ? 1 : size);
    if (!same && (!output.resizable || sizes[i] < 0)) {
      return fail(Status::shape_mismatch, "size ", i, " of the output is ", output.sizes[i],
                  ", of the result ", sizes[i]);
    }
  }
  if (!same && is_input(output)) {
    return fail(Status::invalid_argument, "the output is an input too, and its sizes change");
  }
  if (!same && (bytes > output.capacity_bytes || partial > max_partial)) {
    return fail(Status::shape_mismatch, "the result does not fit the output's ", output.capacity_bytes,
                " bytes");
  }
  for (std::size_t i = 0; i < rank; ++i) {
    output.sizes[i] = sizes[i];
  }
  return Status::ok;
}

bool Arguments::is_input(const Tensor& tensor) const {
  const auto holds = [&tensor](const Value& value) {
    return value.is(ValueKind::tensor) && value.tensor == &tensor;
  };
  for (std::size_t i = 0; i < first_output_; ++i) {
    const Value& value = *values_[i];
    const bool is_list = value.is(ValueKind::tensor_list) || value.is(ValueKind::optional_tensor_list);
    if (holds(value) || (is_list && std::any_of(value.values().begin(), value.values().end(),
                                                [&holds](const Value* item) { return holds(*item); }))) {
      return true;
    }
  }
  return false;
}

Status Arguments::expect_dtype(const Tensor& tensor, ScalarType dtype, const char* what) {
  if (ok() && tensor.dtype != dtype) {
    fail(Status::invalid_argument, what, " is ", scalar_type_name(tensor.dtype), ", not ",
         scalar_type_name(dtype));
  }
  return status_;
}

Status Arguments::expect_same_dim_order(const Tensor& left, const Tensor& right) {
  const std::size_t rank = left.rank;
  if (rank == right.rank && std::equal(left.dim_order, left.dim_order + rank, right.dim_order)) {
    return status_;  // as in nearly all programs
  }
  const auto next = [&](const Tensor& tensor, std::size_t i) {
    while (i < rank && left.sizes[tensor.dim_order[i]] == 1 && right.sizes[tensor.dim_order[i]] == 1) {
      ++i;
    }
    return i;
  };
  bool same = rank == right.rank;
  if (same) {
    std::size_t i = next(left, 0);
    std::size_t j = next(right, 0);
    while (i < rank && j < rank && left.dim_order[i] == right.dim_order[j]) {
      i = next(left, i + 1);
      j = next(right, j + 1);
    }
    same = i >= rank && j >= rank;
  }
  return same ? status_ : fail(Status::unsupported_argument, "tensors of different dim_order");
}

Status Arguments::expect_contiguous(const Tensor& tensor, const char* what) {
  return tensor.is_contiguous() ? status_ : fail(Status::unsupported_argument, what, " is not contiguous");
}

Status Arguments::unsupported_dtype(const Tensor& tensor) {
  return fail(Status::unsupported_argument, "this kernel does not compute ", scalar_type_name(tensor.dtype));
}

std::size_t read_view_sizes(Arguments& arguments, std::size_t index, const Tensor& input,
                            std::int32_t (&sizes)[max_rank]) {
  std::int64_t wanted[max_rank];
  const std::size_t rank = arguments.integers(index, wanted, max_rank);
  std::uint64_t known = 1;
  std::size_t inferred = max_rank;
  for (std::size_t i = 0; i < rank; ++i) {
    if (wanted[i] == -1 && inferred == max_rank) {
      inferred = i;
      continue;
    }
    if (wanted[i] < 0 || wanted[i] > 0x7FFFFFFF) {
      arguments.fail(Status::invalid_argument, "size ", i, " of the view is ", wanted[i]);
      return 0;
    }
    sizes[i] = static_cast<std::int32_t>(wanted[i]);
    known = known * static_cast<std::uint64_t>(wanted[i]) & 0xFFFFFFFFu;
  }
  if (inferred != max_rank) {
    if (known == 0) {
      arguments.fail(Status::invalid_argument, "size ", inferred, " of the view cannot be inferred");
      return 0;
    }
    sizes[inferred] = static_cast<std::int32_t>(input.element_count() / known);
  }
  return rank;
}

}  // namespace ethosu_sdk::kernels
