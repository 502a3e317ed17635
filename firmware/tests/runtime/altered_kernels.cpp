// Every kernel, made wrong: of what it has computed, one element is another. The negative control of the
// kernels' tests: every case must notice.
#include <cstring>

#include "tests/runtime/wrapped_kernels.hpp"

namespace ethosu_sdk::host {
namespace {

// The element in the middle: a bool that is turned, or a number of no case's results. Not a bit that is
// turned: the next kernel of the case would turn it back.
void alter(const Tensor& tensor) {
  const std::size_t bytes = element_bytes(tensor.dtype);
  const std::size_t count = tensor.data == nullptr ? 0 : tensor.element_count();
  if (count == 0 || bytes == 0) {
    return;
  }
  auto* const element = tensor.as<std::uint8_t>() + count / 2 * bytes;
  if (tensor.dtype == ScalarType::boolean) {
    *element ^= 1;
  } else if (tensor.dtype == ScalarType::int64) {
    auto& number = tensor.as<std::int64_t>()[count / 2];
    number = number == 0 ? 1 : 0;  // still an index
  } else {
    std::memset(element, *element == 0x41 ? 0x42 : 0x41, bytes);
  }
}

void alter(const Value& value) {
  if (value.is(ValueKind::tensor)) {
    alter(*value.tensor);
  } else if (value.is(ValueKind::tensor_list)) {
    alter(*value.values()[0]);
  }
}

struct Altered {
  static Status call(const runtime::KernelEntry& kernel, KernelContext& context,
                     Span<Value* const> arguments) {
    const Status status = kernel.function(context, arguments);
    if (status == Status::ok && !arguments.empty()) {
      alter(*arguments[arguments.size() - 1]);
    }
    return status;
  }
};

}  // namespace

Span<const runtime::KernelEntry> all_kernels() {
  return wrapped_kernels<Altered>();
}

}  // namespace ethosu_sdk::host
