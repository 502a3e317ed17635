// The arguments of a delegate call are checked before anything is copied or run.
#include <cstring>

#include "app/ethosu_delegate.hpp"
#include "tests/support/check.hpp"

namespace {

using namespace ethosu_sdk;

constexpr std::size_t slot_words = 9;  // shape[6], element size, offset, region

class NoObserver final : public app::JobObserver {
 public:
  void on_job(std::uint32_t, const npu::Counters&) override {}
  void on_call() override {}
};

// One input and one output of four bytes each.
struct Call {
  std::int32_t input_entry[slot_words] = {1, 1, 1, 1, 1, 4, 1, 0, 1};
  std::int32_t output_entry[slot_words] = {1, 1, 1, 1, 1, 4, 1, 16, 1};
  npu::Payload payload;
  std::uint8_t scratch[32] = {};
  std::int32_t sizes[1] = {4};
  std::uint8_t memory[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  Tensor tensors[2];
  Value values[2];
  Value* arguments[2] = {&values[0], &values[1]};
  npu::Driver driver;
  NoObserver observer;
  app::EthosUDelegate delegate{driver, observer};

  Call() {
    payload.inputs = {reinterpret_cast<const std::uint8_t*>(input_entry), 1};
    payload.outputs = {reinterpret_cast<const std::uint8_t*>(output_entry), 1};
    for (int i = 0; i < 2; ++i) {
      tensors[i].data = memory[i];
      tensors[i].sizes = sizes;
      tensors[i].rank = 1;
      tensors[i].dtype = ScalarType::int8;
      values[i].kind = ValueKind::tensor;
      values[i].tensor = &tensors[i];
    }
    delegate.use({{scratch, sizeof scratch}, {}}, 1);
    delegate.use_payloads({&payload, 1});
  }

  bool refused(std::size_t count = 2) {
    const Status status = delegate.execute(0, 0, {arguments, count});
    return status == Status::delegate_failed && std::strcmp(delegate.error().code, "wrong_arguments") == 0;
  }
  bool says(const char* words) const { return std::strstr(delegate.error_text(), words) != nullptr; }
  bool untouched() const { return scratch[0] == 0 && memory[1][0] == 5; }
};

void test_good_arguments_reach_the_npu() {
  Call call;
  CHECK(!call.refused());  // there is no NPU: the driver refuses, not the check
  CHECK(call.scratch[0] == 1);
}

void test_a_constant_is_an_input_but_no_output() {
  Call call;
  call.tensors[0].constant = true;
  CHECK(!call.refused());
  Call other;
  other.tensors[1].constant = true;
  CHECK(other.refused() && other.says("argument 1 is an output") && other.untouched());
}

void test_what_is_no_tensor_with_memory_is_refused() {
  Call number;
  number.values[0].kind = ValueKind::integer;
  CHECK(number.refused() && number.says("argument 0 is not a tensor") && number.untouched());
  Call bare;
  bare.tensors[1].data = nullptr;
  CHECK(bare.refused() && bare.says("argument 1 is not a tensor"));
  Call few;
  CHECK(few.refused(1) && few.says("1 arguments"));
}

}  // namespace

int main() {
  test_good_arguments_reach_the_npu();
  test_a_constant_is_an_input_but_no_output();
  test_what_is_no_tensor_with_memory_is_refused();
  return host::failed_checks == 0 ? 0 : 1;
}
