#include "runtime/value_loader.hpp"

#include <cstring>

namespace ethosu_sdk::runtime {
namespace {

// Bytes of one tensor, and what its sizes multiply to even when one of them is 0: kernels form partial
// products.
constexpr std::uint64_t max_tensor_bytes = 0x7FFFFFFF;

bool is_aligned(const void* address, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

}  // namespace

std::uint64_t ValueLoader::planned_bytes(std::uint32_t memory_id) const {
  // Element 0 is reserved; load() and check_planned_buffers() have checked the rest.
  return static_cast<std::uint64_t>(plan_.non_const_buffer_sizes()->Get(memory_id));
}

Status ValueLoader::check_planned_buffers() {
  if (!has_aligned_items(plan_.non_const_buffer_sizes())) {
    return fail(Status::bad_program, "the sizes of the planned buffers are misaligned");
  }
  for (std::uint32_t id = 1; id < length(plan_.non_const_buffer_sizes()); ++id) {
    const std::int64_t wanted = plan_.non_const_buffer_sizes()->Get(id);
    const std::size_t given = id <= memory_.planned.size() ? memory_.planned[id - 1].size() : 0;
    if (wanted < 0) {
      return fail(Status::bad_program, "planned buffer ", id, " has ", wanted, " bytes");
    }
    if (static_cast<std::uint64_t>(wanted) > given) {
      return fail(Status::out_of_memory, "planned buffer ", id, " needs ", wanted, " bytes and has ", given);
    }
    if (wanted > 0 && !is_aligned(memory_.planned[id - 1].data(), memory_alignment)) {
      return fail(Status::invalid_argument, "planned buffer ", id, " is not aligned to 16 bytes");
    }
  }
  for (std::uint32_t i = 0; i < length(plan_.non_const_buffer_device()); ++i) {
    if (plan_.non_const_buffer_device()->Get(i)->device_type() != schema::DeviceType::CPU) {
      return fail(Status::unsupported_program, "a planned buffer lies in a device's memory");
    }
  }
  return Status::ok;
}

Status ValueLoader::load(std::uint32_t index) {
  const schema::EValue& row = *plan_.values()->Get(index);
  Value& value = values_[index];
  if (row.val() == nullptr && row.val_type() != schema::KernelTypes::NONE) {
    return fail(Status::bad_program, "a value without content");
  }
  switch (row.val_type()) {
    case schema::KernelTypes::Null:
      value.kind = ValueKind::none;
      return Status::ok;
    case schema::KernelTypes::Int:
      value.kind = ValueKind::integer;
      value.integer = row.val_as_Int()->int_val();
      return Status::ok;
    case schema::KernelTypes::Bool:
      value.kind = ValueKind::boolean;
      value.boolean = row.val_as_Bool()->bool_val();
      return Status::ok;
    case schema::KernelTypes::Double:
      value.kind = ValueKind::real;
      value.real = row.val_as_Double()->double_val();
      return Status::ok;
    case schema::KernelTypes::Tensor:
      return load_tensor(value, *row.val_as_Tensor());
    case schema::KernelTypes::String:
      value.kind = ValueKind::string;
      value.string = text_of(row.val_as_String()->string_val());
      return Status::ok;
    case schema::KernelTypes::IntList:
      return load_value_list(value, ValueKind::integer_list, row.val_as_IntList()->items());
    case schema::KernelTypes::DoubleList:
      return load_raw_list(value, ValueKind::real_list, row.val_as_DoubleList()->items());
    case schema::KernelTypes::BoolList:
      return load_raw_list(value, ValueKind::boolean_list, row.val_as_BoolList()->items());
    case schema::KernelTypes::TensorList:
      return load_value_list(value, ValueKind::tensor_list, row.val_as_TensorList()->items());
    case schema::KernelTypes::OptionalTensorList:
      return load_value_list(value, ValueKind::optional_tensor_list,
                             row.val_as_OptionalTensorList()->items());
    default:
      return fail(Status::bad_program, "unknown kind of value ", static_cast<unsigned>(row.val_type()));
  }
}

template <typename Scalar>
Status ValueLoader::load_raw_list(Value& value, ValueKind kind, const flatbuffers::Vector<Scalar>* items) {
  if (!has_aligned_items(items)) {
    return fail(Status::bad_program, "a misaligned list");
  }
  value.kind = kind;
  value.items = items == nullptr ? nullptr : items->Data();
  value.item_count = length(items);
  return Status::ok;
}

template <typename Index>
Status ValueLoader::load_value_list(Value& value, ValueKind kind, const flatbuffers::Vector<Index>* items) {
  if (!has_aligned_items(items)) {
    return fail(Status::bad_program, "a misaligned list");
  }
  auto** const pointers = pool_.take<Value*>(length(items));
  if (pointers == nullptr) {
    return fail(Status::out_of_memory, "the method pool is too small for a list of ", length(items));
  }
  for (std::uint32_t i = 0; i < length(items); ++i) {
    const Index item = items->Get(i);
    if (kind == ValueKind::optional_tensor_list && item == -1) {
      pointers[i] = &none_;
      continue;
    }
    if (item < 0 || static_cast<std::uint64_t>(item) >= values_.size()) {
      return fail(Status::bad_program, "item ", i, " is value ", item, " of ", values_.size());
    }
    pointers[i] = &values_[static_cast<std::size_t>(item)];
  }
  value.kind = kind;
  value.items = pointers;
  value.item_count = length(items);
  return Status::ok;
}

Status ValueLoader::load_tensor(Value& value, const schema::Tensor& row) {
  auto* const tensor = pool_.take<Tensor>(1);
  if (tensor == nullptr) {
    return fail(Status::out_of_memory, "the method pool is too small for a tensor");
  }
  tensor->dtype = static_cast<ScalarType>(row.scalar_type());
  if (element_bytes(tensor->dtype) == 0) {
    return fail(Status::unsupported_program, "a tensor of scalar type ", static_cast<int>(row.scalar_type()));
  }
  if (row.storage_offset() != 0) {
    return fail(Status::unsupported_program, "a tensor with storage offset ", row.storage_offset());
  }
  if (const Status status = load_shape(*tensor, row); status != Status::ok) {
    return status;
  }
  if (const Status status = load_dim_order(*tensor, row); status != Status::ok) {
    return status;
  }
  if (const Status status = locate(*tensor, row); status != Status::ok) {
    return status;
  }
  value.kind = ValueKind::tensor;
  value.tensor = tensor;
  return Status::ok;
}

Status ValueLoader::load_shape(Tensor& tensor, const schema::Tensor& row) {
  const auto* const sizes = row.sizes();
  if (length(sizes) > max_rank) {
    return fail(Status::unsupported_program, "a tensor of rank ", length(sizes));
  }
  switch (row.shape_dynamism()) {
    case schema::TensorShapeDynamism::STATIC:
      break;
    case schema::TensorShapeDynamism::DYNAMIC_BOUND:
      tensor.resizable = true;
      break;
    case schema::TensorShapeDynamism::DYNAMIC_UNBOUND:
    default:
      return fail(Status::unsupported_program, "a tensor whose shape has no upper bound");
  }
  tensor.rank = static_cast<std::uint8_t>(length(sizes));
  tensor.sizes = pool_.take<std::int32_t>(tensor.rank);
  if (tensor.sizes == nullptr) {
    return fail(Status::out_of_memory, "the method pool is too small for a tensor's sizes");
  }
  std::uint64_t product = element_bytes(tensor.dtype);
  for (std::uint32_t i = 0; i < tensor.rank; ++i) {
    const std::int32_t size = sizes->Get(i);
    if (size < 0) {
      return fail(Status::bad_program, "size ", i, " is ", size);
    }
    product *= size == 0 ? 1 : static_cast<std::uint64_t>(size);
    if (product > max_tensor_bytes) {
      return fail(Status::bad_program, "a tensor of more than 2 GiB");
    }
    tensor.sizes[i] = size;
  }
  tensor.capacity_bytes = tensor.byte_count();
  return Status::ok;
}

Status ValueLoader::load_dim_order(Tensor& tensor, const schema::Tensor& row) {
  if (length(row.dim_order()) != tensor.rank) {
    return fail(Status::bad_program, "dim_order has ", length(row.dim_order()), " of ", tensor.rank,
                " dimensions");
  }
  if (tensor.rank == 0) {
    return Status::ok;
  }
  tensor.dim_order = row.dim_order()->Data();
  std::uint32_t seen = 0;
  for (std::uint32_t i = 0; i < tensor.rank; ++i) {
    const std::uint8_t dim = tensor.dim_order[i];
    if (dim >= tensor.rank || (seen >> dim & 1u) != 0) {
      return fail(Status::bad_program, "dim_order is no permutation");
    }
    seen |= 1u << dim;
  }
  return Status::ok;
}

// Where a tensor's bytes lie follows from two fields (program.fbs, table Tensor): data_buffer_idx, the number
// of its stored data, and allocation_info, its place in a planned buffer.
Status ValueLoader::locate(Tensor& tensor, const schema::Tensor& row) {
  const auto* const extra = row.extra_tensor_info();
  if (extra != nullptr && extra->device_type() != schema::DeviceType::CPU) {
    return fail(Status::unsupported_program, "a tensor in a device's memory");
  }
  const bool external = extra != nullptr && extra->location() == schema::TensorDataLocation::EXTERNAL;
  const bool stored = external || row.data_buffer_idx() != 0;
  Span<const std::uint8_t> bytes;
  if (stored) {
    if (const Status status = stored_bytes(tensor, row, bytes); status != Status::ok) {
      return status;
    }
    tensor.data = const_cast<std::uint8_t*>(bytes.data());  // `constant` guards it
    tensor.constant = true;
  }
  if (row.allocation_info() != nullptr) {
    tensor.constant = false;
    if (const Status status = locate_planned(tensor, *row.allocation_info()); status != Status::ok) {
      return status;
    }
    if (stored && tensor.capacity_bytes != 0) {
      std::memcpy(tensor.data, bytes.data(), tensor.capacity_bytes);  // the initial state
    }
  }
  // Without either, the tensor gets its memory by Method::bind().
  if (!is_aligned(tensor.data, element_bytes(tensor.dtype))) {
    return fail(Status::bad_program, "a tensor's data is not aligned to its elements");
  }
  return Status::ok;
}

Status ValueLoader::locate_planned(Tensor& tensor, const schema::AllocationDetails& allocation) {
  const std::uint32_t id = allocation.memory_id();
  const std::uint64_t offset =
      std::uint64_t{allocation.memory_offset_high()} << 32 | allocation.memory_offset_low();
  if (id == 0 || id >= length(plan_.non_const_buffer_sizes())) {
    return fail(Status::bad_program, "planned buffer ", id, " does not exist");
  }
  const std::uint64_t available = planned_bytes(id);
  if (offset > available || tensor.capacity_bytes > available - offset) {
    return fail(Status::bad_program, tensor.capacity_bytes, " bytes at offset ", offset,
                " reach past planned buffer ", id, " (", available, " bytes)");
  }
  tensor.data = memory_.planned[id - 1].data() + offset;
  return Status::ok;
}

// The bytes that the file stores for a tensor: by name, or by number in the segment of constants or of
// initial states.
Status ValueLoader::stored_bytes(const Tensor& tensor, const schema::Tensor& row,
                                 Span<const std::uint8_t>& bytes) {
  const auto* const extra = row.extra_tensor_info();
  if (extra != nullptr && extra->location() == schema::TensorDataLocation::EXTERNAL) {
    return named_bytes(tensor, text_of(extra->fully_qualified_name()), bytes);
  }
  const schema::SubsegmentOffsets* offsets = file_.program().constant_segment();
  if (row.allocation_info() != nullptr) {
    const auto* const initial_states = file_.program().mutable_data_segments();
    const std::uint64_t index = extra == nullptr ? 0 : extra->mutable_data_segments_idx();
    if (index >= length(initial_states)) {
      return fail(Status::bad_program, "mutable data segment ", index, " does not exist");
    }
    offsets = initial_states->Get(static_cast<std::uint32_t>(index));
  }
  return file_.subsegment(offsets, row.data_buffer_idx(), tensor.capacity_bytes, bytes, reason_);
}

// The program's own named data has no layout, that of data files must be the tensor's.
Status ValueLoader::named_bytes(const Tensor& tensor, const char* key, Span<const std::uint8_t>& bytes) {
  NamedBlob blob;
  if (const Status status = file_.named_data(key, blob, reason_); status != Status::ok) {
    return status;
  }
  bytes = blob.bytes;
  if (bytes.size() < tensor.capacity_bytes) {
    return fail(Status::bad_program, "named data of ", bytes.size(), " bytes, the tensor needs ",
                tensor.capacity_bytes);
  }
  if (!blob.has_layout) {
    return Status::ok;
  }
  bool is_same = blob.dtype == tensor.dtype && blob.sizes.size() == tensor.rank &&
                 blob.dim_order.size() == tensor.rank && bytes.size() == tensor.capacity_bytes;
  for (std::uint32_t i = 0; is_same && i < tensor.rank; ++i) {
    is_same = blob.sizes[i] == tensor.sizes[i] && blob.dim_order[i] == tensor.dim_order[i];
  }
  return is_same ? Status::ok : fail(Status::bad_program, "the data of '", key, "' is another tensor");
}

}  // namespace ethosu_sdk::runtime
