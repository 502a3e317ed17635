// Every kernel, behind one that calls it over and over with damaged copies of its arguments before the true
// call: other kinds, dtypes, ranks, sizes, layouts and numbers, shared memory, wild indices. Each copy has
// memory to the byte, so that the sanitizers see every access beside it. Whatever a kernel is given, it must
// end in ok, or in an error with a reason.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/runtime/wrapped_kernels.hpp"

namespace ethosu_sdk::host {
namespace {

constexpr std::size_t largest_call = 16384;  // bytes; larger tensors only take longer
unsigned long attacks = 0;

constexpr std::int64_t integers[] = {INT64_MIN, -0x80000001LL, -3, -1, 0, 1, 3, 0x80000000LL, INT64_MAX};
constexpr double reals[] = {-1.0, 0.0, 0.5, 1e300, std::numeric_limits<double>::infinity(), NAN};
constexpr ScalarType dtypes[] = {ScalarType::uint8,   ScalarType::int8,    ScalarType::int16,
                                 ScalarType::int32,   ScalarType::int64,   ScalarType::float16,
                                 ScalarType::float32, ScalarType::float64, ScalarType::boolean};

// A tensor that owns its memory.
struct OwnTensor {
  explicit OwnTensor(const Tensor& original) : tensor(original) {
    sizes.assign(original.sizes, original.sizes + original.rank);
    if (original.rank != 0) {
      order.assign(original.dim_order, original.dim_order + original.rank);
    }
    give_memory(original.data);
  }

  // As many bytes as dtype and sizes say, with the contents of `from`; nullptr: bytes of one value.
  void give_memory(const void* from, int filling = 0x5A) {
    sizes.reserve(max_rank + 1);
    order.reserve(max_rank + 1);
    tensor.sizes = sizes.data();
    tensor.dim_order = order.data();
    tensor.rank = static_cast<std::uint8_t>(sizes.size());
    tensor.capacity_bytes = tensor.byte_count();
    memory.reset(new std::uint8_t[tensor.capacity_bytes]);
    tensor.data = memory.get();
    if (tensor.capacity_bytes == 0) {
      return;
    }
    if (from != nullptr) {
      std::memcpy(tensor.data, from, tensor.capacity_bytes);
    } else {
      std::memset(tensor.data, filling, tensor.capacity_bytes);
    }
  }

  Tensor tensor;
  std::vector<std::int32_t> sizes;
  std::vector<std::uint8_t> order;
  std::unique_ptr<std::uint8_t[]> memory;
};

// Deep copies of a call's arguments; a Value that comes twice stays one.
class Copy {
 public:
  explicit Copy(Span<Value* const> originals) {
    for (const Value* original : originals) {
      arguments.push_back(value(*original));
    }
  }

  std::vector<Value*> arguments;
  std::vector<std::unique_ptr<OwnTensor>> tensors;
  std::vector<Value*> values;  // all, those in lists too

  OwnTensor* owner(const Value& value) {
    for (const auto& tensor : tensors) {
      if (value.is(ValueKind::tensor) && value.tensor == &tensor->tensor) {
        return tensor.get();
      }
    }
    return nullptr;
  }

 private:
  Value* value(const Value& original) {
    std::unique_ptr<Value>& place = copies_[&original];
    if (place != nullptr) {
      return place.get();
    }
    place = std::make_unique<Value>(original);
    Value* const copy = place.get();
    values.push_back(copy);
    if (original.is(ValueKind::tensor)) {
      tensors.push_back(std::make_unique<OwnTensor>(*original.tensor));
      copy->tensor = &tensors.back()->tensor;
    }
    if (original.is(ValueKind::integer_list) || original.is(ValueKind::tensor_list) ||
        original.is(ValueKind::optional_tensor_list)) {
      auto items = std::make_unique<std::vector<Value*>>();
      for (const Value* item : original.values()) {
        items->push_back(value(*item));
      }
      copy->items = items->data();
      lists_.push_back(std::move(items));
    }
    return copy;
  }

  std::map<const Value*, std::unique_ptr<Value>> copies_;
  std::vector<std::unique_ptr<std::vector<Value*>>> lists_;
};

// One way to damage a tensor; false when there is no such way.
bool damage_tensor(Copy& copy, OwnTensor& victim, std::size_t way) {
  if (way < std::size(dtypes)) {
    victim.tensor.dtype = dtypes[way];
    victim.give_memory(nullptr, 0);
    return true;
  }
  way -= std::size(dtypes);
  const std::size_t rank = victim.sizes.size();
  switch (way) {
    case 0:  // wild contents: indices, conditions, numbers
      victim.give_memory(nullptr, 0x7F);
      return true;
    case 1:
      victim.give_memory(nullptr, 0xFF);
      return true;
    case 2:
      victim.sizes.push_back(1);
      victim.order.push_back(static_cast<std::uint8_t>(rank));
      victim.give_memory(nullptr, 0);
      return rank < max_rank;
    case 3:
      if (rank != 0) {
        victim.sizes.pop_back();
        victim.order.clear();
        for (std::size_t i = 0; i + 1 < rank; ++i) {
          victim.order.push_back(static_cast<std::uint8_t>(i));
        }
        victim.give_memory(nullptr, 0);
      }
      return true;
    case 4:
      std::reverse(victim.order.begin(), victim.order.end());
      return true;
    case 5:
      victim.tensor.resizable = true;
      return true;
    case 6:
      victim.tensor.constant = true;
      return true;
    case 7:  // all share the victim's memory as far as it reaches
      for (const auto& other : copy.tensors) {
        if (other->tensor.capacity_bytes <= victim.tensor.capacity_bytes) {
          other->tensor.data = victim.tensor.data;
        }
      }
      return true;
    default:
      break;
  }
  way -= 8;
  const std::size_t dim = way / 3;
  if (dim >= rank) {
    return false;
  }
  victim.sizes[dim] = way % 3 == 0 ? 0 : victim.sizes[dim] + (way % 3 == 1 ? 1 : -1);
  victim.sizes[dim] = victim.sizes[dim] < 0 ? 3 : victim.sizes[dim];
  victim.give_memory(nullptr, 0);
  return true;
}

// One way to damage a value; false when there is no such way.
bool damage(Copy& copy, Value& value, std::size_t way) {
  OwnTensor* const tensor = copy.owner(value);
  if (way < std::size(integers)) {
    value.kind = ValueKind::integer;
    value.integer = integers[way];
    return true;
  }
  way -= std::size(integers);
  if (way < std::size(reals)) {
    value.kind = ValueKind::real;
    value.real = reals[way];
    return true;
  }
  way -= std::size(reals);
  switch (way) {
    case 0:
      value.kind = ValueKind::none;
      return true;
    case 1:
      value.kind = ValueKind::boolean;
      value.boolean = true;
      return true;
    case 2:
      value.kind = ValueKind::string;
      value.string = "tanh";
      return true;
    case 3:
      value.kind = ValueKind::integer_list;
      value.items = nullptr;
      value.item_count = 0;
      return true;
    case 4:
      for (Value* other : copy.values) {
        if (other->is(ValueKind::tensor) && other != &value) {
          value = *other;
          return true;
        }
      }
      return true;
    default:
      break;
  }
  return tensor != nullptr && damage_tensor(copy, *tensor, way - 5);
}

std::size_t bytes_of(Span<Value* const> arguments) {
  std::size_t bytes = 0;
  for (const Value* value : arguments) {
    bytes += value->is(ValueKind::tensor) ? value->tensor->byte_count() : 0;
  }
  return bytes;
}

void attack(const runtime::KernelEntry& kernel, Span<Value* const> arguments) {
  // A view's output has no memory before the call.
  if (bytes_of(arguments) > largest_call ||
      std::strcmp(kernel.name, "executorch_prim::et_view.default") == 0) {
    return;
  }
  const std::size_t count = Copy(arguments).values.size();
  for (std::size_t victim = 0; victim < count; ++victim) {
    for (std::size_t way = 0;; ++way) {
      Copy copy(arguments);
      if (!damage(copy, *copy.values[victim], way)) {
        break;
      }
      ErrorText text;
      KernelContext context(text);
      const Status status = kernel.function(context, {copy.arguments.data(), copy.arguments.size()});
      ++attacks;
      if ((status == Status::ok) != text.empty()) {
        std::printf("%s: victim %zu, way %zu: status %s, reason '%s'\n", kernel.name, victim, way,
                    status_name(status), text.c_str());
        std::abort();
      }
    }
  }
}

struct Attacked {
  static Status call(const runtime::KernelEntry& kernel, KernelContext& context,
                     Span<Value* const> arguments) {
    attack(kernel, arguments);
    return kernel.function(context, arguments);
  }
};

}  // namespace

Span<const runtime::KernelEntry> all_kernels() {
  std::atexit([] { std::printf("attacks %lu\n", attacks); });
  return wrapped_kernels<Attacked>();
}

}  // namespace ethosu_sdk::host
