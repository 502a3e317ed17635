// The interpreter on programs that no exporter writes: each contradiction is refused by name and in words.
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "tests/runtime/session.hpp"
#include "tests/support/check.hpp"

namespace {

using namespace ethosu_sdk;
using namespace ethosu_sdk::host;

struct Refusal {
  const char* reason;  // a part of the text
  Status status;
  std::function<void(ProgramBuilder&)> build;
};

void check_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    ProgramBuilder builder;
    refusal.build(builder);
    Session session(builder);
    Status status = session.load();
    if (status == Status::ok) {
      status = session.method.execute(nullptr);
    }
    const bool named = std::strstr(session.method.error_text(), refusal.reason) != nullptr;
    CHECK(status == refusal.status && named);
    if (status != refusal.status || !named) {
      std::printf("  wanted %s '%s', found %s '%s'\n", status_name(refusal.status), refusal.reason,
                  status_name(status), session.method.error_text());
    }
  }
}

std::function<void(ProgramBuilder&)> with_tensor(const std::function<void(TensorRow&)>& change) {
  return [change](ProgramBuilder& builder) {
    TensorRow row;
    change(row);
    builder.tensor(row);
  };
}

void test_bad_tensors() {
  const auto bad = Status::bad_program;
  const auto lacking = Status::unsupported_program;
  check_refusals({
      {"value 0: size 0 is -4", bad, with_tensor([](TensorRow& row) { row.sizes = {-4}; })},
      {"more than 2 GiB", bad, with_tensor([](TensorRow& row) {
         row.sizes = {65536, 65536, 65536, 65536};  // 2^64 elements: 0 in 64 bits
         row.dim_order = {0, 1, 2, 3};
       })},
      {"more than 2 GiB", bad, with_tensor([](TensorRow& row) {
         row.sizes = {0, 2000000000, 2000000000};
         row.dim_order = {0, 1, 2};
       })},
      {"reach past planned buffer 1", bad, with_tensor([](TensorRow& row) { row.sizes = {17}; })},
      {"reach past planned buffer 1", bad, with_tensor([](TensorRow& row) { row.offset_low = 0xFFFFFFF0; })},
      {"reach past planned buffer 1", bad, with_tensor([](TensorRow& row) { row.offset_high = 1; })},
      {"planned buffer 2 does not exist", bad, with_tensor([](TensorRow& row) { row.memory_id = 2; })},
      {"not aligned", bad, with_tensor([](TensorRow& row) { row.offset_low = 2; })},
      {"dim_order has 2 of 1", bad, with_tensor([](TensorRow& row) {
         row.dim_order = {0, 1};
       })},
      {"no permutation", bad, with_tensor([](TensorRow& row) { row.dim_order = {1}; })},
      {"no permutation", bad, with_tensor([](TensorRow& row) {
         row.sizes = {2, 2};
         row.dim_order = {1, 1};
       })},
      {"scalar type 9", lacking, with_tensor([](TensorRow& row) { row.dtype = schema::ScalarType(9); })},
      {"scalar type -1", lacking, with_tensor([](TensorRow& row) { row.dtype = schema::ScalarType(-1); })},
      {"storage offset 1", lacking, with_tensor([](TensorRow& row) { row.storage_offset = 1; })},
      {"rank 17", lacking, with_tensor([](TensorRow& row) { row.sizes.assign(17, 1); })},
      {"no upper bound", lacking,
       with_tensor([](TensorRow& row) { row.dynamism = schema::TensorShapeDynamism::DYNAMIC_UNBOUND; })},
      {"device's memory", lacking,
       with_tensor([](TensorRow& row) { row.device = schema::DeviceType::CUDA; })},
      {"data buffer 2 does not exist", bad, with_tensor([](TensorRow& row) {
         row.memory_id = 0;
         row.data_buffer = 2;
       })},
      {"reaches past segment 0", bad, with_tensor([](TensorRow& row) {
         row.memory_id = 0;
         row.data_buffer = 1;
         row.sizes = {5};
       })},
      {"data buffer 7 does not exist", bad, with_tensor([](TensorRow& row) { row.data_buffer = 7; })},
  });
}

void test_bad_tables() {
  const auto bad = Status::bad_program;
  check_refusals({
      {"schema version 1", Status::unsupported_program, [](ProgramBuilder& b) { b.version = 1; }},
      {"planned buffer 1 has -1", bad,
       [](ProgramBuilder& b) {
         b.planned = {0, -1};
       }},
      {"planned buffer 2 needs 65 bytes and has 64", Status::out_of_memory,
       [](ProgramBuilder& b) {
         b.planned = {0, 64, 65};
       }},
      {"planned buffer 3 needs 1 bytes and has 0", Status::out_of_memory,
       [](ProgramBuilder& b) {
         b.planned = {0, 0, 0, 1};
       }},
      {"unknown kind of value 77", bad, [](ProgramBuilder& b) { b.value_of_kind(77, true); }},
      {"a value without content", bad, [](ProgramBuilder& b) { b.value_of_kind(2, false); }},
      {"item 0 is value 1 of 1", bad, [](ProgramBuilder& b) { b.integers({1}); }},
      {"item 0 is value -1 of 1", bad, [](ProgramBuilder& b) { b.tensors({-1}); }},
      {"item 1 is value 4294967296", bad,
       [](ProgramBuilder& b) {
         b.integers({0, 1LL << 32});
       }},
      {"input is value 3 of 1", bad, [](ProgramBuilder& b) { b.none(), b.inputs = {3}; }},
      {"output is value -2 of 1", bad, [](ProgramBuilder& b) { b.none(), b.outputs = {-2}; }},
      {"no kernel for test::other.out", Status::missing_kernel,
       [](ProgramBuilder& b) { b.add_operator("test::other", "out"); }},
      {"no kernel for test::other", Status::missing_kernel,
       [](ProgramBuilder& b) { b.add_operator("test::other", ""); }},
      {"delegate 0: no backend 'Other'", Status::missing_delegate,
       [](ProgramBuilder& b) { b.add_delegate("Other", schema::DataLocation::INLINE, 0); }},
      {"delegate 0: payload 1 does not exist", bad,
       [](ProgramBuilder& b) { b.add_delegate("EthosUBackend", schema::DataLocation::INLINE, 1); }},
      {"delegate 0: payload 0 does not exist", bad,
       [](ProgramBuilder& b) { b.add_delegate("EthosUBackend", schema::DataLocation(5), 0); }},
      {"delegate 0: segment 2 does not exist", bad,
       [](ProgramBuilder& b) { b.add_delegate("EthosUBackend", schema::DataLocation::SEGMENT, 2); }},
      {"segment 0 (offset 18446744073709551615", bad,
       [](ProgramBuilder& b) {
         b.segments[0] = {~0ull, 16};
         b.add_delegate("EthosUBackend", schema::DataLocation::SEGMENT, 0);
       }},
      {"segment 1 (offset 16, 49 bytes) reaches past the file's end", bad,
       [](ProgramBuilder& b) {
         b.segments[1] = {16, 49};
         b.add_delegate("EthosUBackend", schema::DataLocation::SEGMENT, 1);
       }},
  });
}

void test_bad_instructions() {
  const auto bad = Status::bad_program;
  check_refusals({
      {"instruction 0: it calls operator 0 of 0", bad, [](ProgramBuilder& b) { b.call(0, {}); }},
      {"it calls operator -1", bad, [](ProgramBuilder& b) { b.call(-1, {}); }},
      {"it calls delegate 0 of 0", bad, [](ProgramBuilder& b) { b.call_delegate(0, {}); }},
      {"an argument is value 3 of 3", bad,
       [](ProgramBuilder& b) {
         add_two(b);
         b.call(0, {0, 1, 3});
       }},
      {"its source is value 0 of 0", bad, [](ProgramBuilder& b) { b.move(0, 0); }},
      {"its destination is value 1 of 1", bad, [](ProgramBuilder& b) { b.none(), b.move(0, 1); }},
      {"it jumps to 2 of 1", bad, [](ProgramBuilder& b) { b.jump_if_false(b.boolean(true), 2); }},
      {"it jumps to -1 of 1", bad, [](ProgramBuilder& b) { b.jump_if_false(b.boolean(true), -1); }},
      {"its tensor is value 5", bad, [](ProgramBuilder& b) { b.free(5); }},
      {"it has no content", bad, [](ProgramBuilder& b) { b.instruction_of_kind(1); }},
      {"it has no content", bad, [](ProgramBuilder& b) { b.instruction_of_kind(200); }},
      {"instruction 0: the condition is a integer", bad,
       [](ProgramBuilder& b) { b.jump_if_false(b.integer(0), 1); }},
      {"instruction 0: it frees a none", bad, [](ProgramBuilder& b) { b.free(b.none()); }},
      {"more than 1048576 instructions", Status::instruction_limit,
       [](ProgramBuilder& b) { b.jump_if_false(b.boolean(false), 0); }},
      {"instruction 0, test::sum.out: no tensor", Status::invalid_argument,
       [](ProgramBuilder& b) {
         b.add_operator("test::sum", "out");
         b.call(0, {b.none(), b.none()});
       }},
      {"instruction 0, test::sum: too few", Status::invalid_argument,
       [](ProgramBuilder& b) {
         b.add_operator("test::sum", "");
         b.call(0, {});
       }},
      {"argument 1 has no memory", Status::missing_data,
       [](ProgramBuilder& b) {
         TensorRow unbound;
         unbound.memory_id = 0;
         b.add_operator("test::sum", "out");
         b.call(0, {b.tensor(at(0)), b.tensor(unbound)});
       }},
      {"a tensor in argument 0 has no memory", Status::missing_data,
       [](ProgramBuilder& b) {
         TensorRow unbound;
         unbound.memory_id = 0;
         b.add_operator("test::sum", "out");
         b.call(0, {b.tensors({b.tensor(unbound)})});
       }},
      {"instruction 1, test::sum.out: argument 0 has no memory", Status::missing_data,
       [](ProgramBuilder& b) {
         b.add_operator("test::sum", "out");
         const std::int32_t tensor = b.tensor(at(0));
         b.free(tensor);
         b.call(0, {tensor, tensor});
       }},
  });
}

}  // namespace

int main() {
  test_bad_tensors();
  test_bad_tables();
  test_bad_instructions();
  return failed_checks == 0 ? 0 : 1;
}
