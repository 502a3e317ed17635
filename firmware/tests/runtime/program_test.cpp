// The interpreter on programs that no exporter writes: each contradiction is refused by name and in words.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "runtime/method.hpp"
#include "tests/runtime/program_builder.hpp"
#include "tests/support/check.hpp"

namespace {

using namespace ethosu_sdk;
using host::ProgramBuilder;
using host::TensorRow;
namespace schema = host::schema;

struct alignas(16) Memory {
  std::uint8_t bytes[4096];
};

// Adds its arguments but the last, element by element.
Status sum(KernelContext& context, Span<Value* const> arguments) {
  if (arguments.size() < 2) {
    return context.fail(Status::invalid_argument, "too few");
  }
  for (const Value* value : arguments) {
    if (!value->is(ValueKind::tensor)) {
      return context.fail(Status::invalid_argument, "no tensor");
    }
  }
  const Tensor& output = *arguments[arguments.size() - 1]->tensor;
  for (std::size_t i = 0; i < 4; ++i) {
    float total = 0;
    for (std::size_t n = 0; n + 1 < arguments.size(); ++n) {
      total += arguments[n]->tensor->as<const float>()[i];
    }
    output.as<float>()[i] = total;
  }
  return Status::ok;
}

constexpr runtime::KernelEntry kernels[] = {{"test::sum", "out", sum}, {"test::sum", "", sum}};

class Delegate final : public runtime::Delegate {
 public:
  Status init(std::uint32_t index, Span<const std::uint8_t> payload) override {
    last_index = index;
    last_payload = payload;
    return refuse_init ? Status::delegate_failed : Status::ok;
  }
  Status execute(std::uint32_t, std::uint32_t, Span<Value* const>) override {
    ++executions;
    return refuse_execute ? Status::delegate_failed : Status::ok;
  }
  const char* error_text() const override { return "because"; }

  std::uint32_t last_index = 99;
  Span<const std::uint8_t> last_payload;
  unsigned executions = 0;
  bool refuse_init = false;
  bool refuse_execute = false;
};

// A method with its memory. The file lies at an aligned address and is exactly as long as it says.
struct Session {
  explicit Session(const std::vector<std::uint8_t>& content) : size(content.size()) {
    file.resize(size / sizeof(Memory) + 1);
    std::copy(content.begin(), content.end(), file.front().bytes);
  }
  explicit Session(ProgramBuilder& builder) : Session(builder.finish()) {}

  Status load(std::size_t pool_bytes = sizeof(Memory)) {
    const Span<std::uint8_t> arenas[] = {{planned[0].bytes, planned_bytes[0]},
                                         {planned[1].bytes, planned_bytes[1]}};
    spans[0] = arenas[0];
    spans[1] = arenas[1];
    return method.load({file.front().bytes, size}, "forward", {{pool.bytes, pool_bytes}, {spans, 2}},
                       {kernels, 2}, use_delegate ? &delegate : nullptr);
  }
  float* floats(std::size_t arena, std::size_t offset) {
    return reinterpret_cast<float*>(planned[arena].bytes + offset);
  }

  std::vector<Memory> file;
  std::size_t size;
  Memory pool{};
  Memory planned[2] = {};
  std::size_t planned_bytes[2] = {64, 64};
  Span<std::uint8_t> spans[2];
  Delegate delegate;
  bool use_delegate = true;
  runtime::Method method;
};

TensorRow at(std::uint32_t offset) {
  TensorRow row;
  row.offset_low = offset;
  return row;
}

// Two inputs and their sum.
void add_two(ProgramBuilder& builder) {
  builder.inputs = {builder.tensor(at(0)), builder.tensor(at(16))};
  builder.outputs = {builder.tensor(at(32))};
  builder.add_operator("test::sum", "out");
  builder.call(0, {builder.inputs[0], builder.inputs[1], builder.outputs[0]});
}

void test_good_program() {
  for (const bool extended : {true, false}) {
    ProgramBuilder builder;
    builder.extended_header = extended;
    builder.segments = extended ? builder.segments : std::vector<host::Segment>{};
    add_two(builder);
    Session session(builder);
    CHECK(session.method.execute(nullptr) == Status::invalid_state);
    CHECK(session.load() == Status::ok);
    CHECK(session.method.input_count() == 2 && session.method.output_count() == 1);
    CHECK(session.method.input(0)->data == session.planned[0].bytes);
    CHECK(session.method.input(2) == nullptr && session.method.output(1) == nullptr);
    for (float* number = session.floats(0, 0); number != session.floats(0, 32); ++number) {
      *number = 2.5f;
    }
    CHECK(session.method.execute(nullptr) == Status::ok);
    CHECK(session.method.output(0)->as<float>()[3] == 5.0f);
    CHECK(*session.method.error_text() == '\0');
  }
}

// Every size of the method pool: refused by name up to the size that load() reports, and fine from there on.
void test_every_pool_size() {
  ProgramBuilder builder;
  add_two(builder);
  builder.tensors({0, 1});
  builder.integers({});
  Session session(builder);
  CHECK(session.load() == Status::ok);
  const std::size_t needed = session.method.pool_used();
  CHECK(needed > 100 && needed < sizeof(Memory));
  for (std::size_t bytes = 0; bytes < needed; ++bytes) {
    std::memset(session.pool.bytes, 0xA5, sizeof session.pool.bytes);
    CHECK(session.load(bytes) == Status::out_of_memory);
    CHECK(std::strstr(session.method.error_text(), "pool is too small") != nullptr);
    CHECK(session.method.input_count() == 0 && session.method.execute(nullptr) == Status::invalid_state);
  }
  CHECK(session.load(needed) == Status::ok);
}

void test_every_truncation() {
  ProgramBuilder builder;
  add_two(builder);
  const std::vector<std::uint8_t> whole = builder.finish();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    Session session(
        std::vector<std::uint8_t>(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
    CHECK(session.load() == Status::bad_program);
    CHECK(*session.method.error_text() != '\0');
  }
}

void test_misaligned_memory() {
  ProgramBuilder builder;
  add_two(builder);
  std::vector<std::uint8_t> content = builder.finish();
  Session session(content);
  const Span<std::uint8_t> arenas[] = {{session.planned[0].bytes + 4, 64}};
  const Span<std::uint8_t> pool = {session.pool.bytes, sizeof session.pool.bytes};
  const Span<const std::uint8_t> file = {session.file.front().bytes, session.size};
  runtime::Method method;
  CHECK(method.load(file, "forward", {pool, {arenas, 1}}, {kernels, 2}, nullptr) == Status::invalid_argument);
  const Span<std::uint8_t> shifted = {session.pool.bytes + 8, 1000};
  CHECK(method.load(file, "forward", {shifted, {}}, {kernels, 2}, nullptr) == Status::invalid_argument);
  session.file.resize(session.file.size() + 1);
  std::memmove(session.file.front().bytes + 8, session.file.front().bytes, session.size);
  CHECK(method.load({session.file.front().bytes + 8, session.size}, "forward", {pool, {}}, {kernels, 2},
                    nullptr) == Status::invalid_argument);
}

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

void test_constants_and_initial_state() {
  ProgramBuilder builder;
  builder.planned = {0, 0, 32};
  TensorRow constant;
  constant.memory_id = 0;
  constant.data_buffer = 1;
  TensorRow state;
  state.memory_id = 2;
  state.data_buffer = 1;
  TensorRow named = constant;
  named.location = schema::TensorDataLocation::EXTERNAL;
  builder.inputs = {builder.tensor(constant), builder.tensor(state), builder.tensor(named)};
  Session session(builder);
  CHECK(session.load() == Status::ok);
  const Tensor* const tensors[] = {session.method.input(0), session.method.input(1), session.method.input(2)};
  CHECK(tensors[0]->constant && tensors[0]->as<const std::uint8_t>()[15] == 15);  // segment 0, offset 0
  CHECK(!tensors[1]->constant && tensors[1]->data == session.planned[1].bytes);
  CHECK(tensors[1]->as<const std::uint8_t>()[15] == 16 + 16 + 15);               // segment 1, offset 16
  CHECK(tensors[2]->constant && tensors[2]->as<const std::uint8_t>()[0] == 16);  // "weight": segment 1
}

void test_moves_lists_and_jumps() {
  ProgramBuilder builder;
  add_two(builder);
  const std::int32_t placeholder = builder.none();
  const std::int32_t list = builder.optional_tensors({0, -1, placeholder});
  const std::int32_t yes = builder.boolean(true);
  builder.move(builder.outputs[0], placeholder);
  builder.jump_if_false(yes, 4);                   // stays
  builder.call(0, {0, placeholder, placeholder});  // output += first input, by its other name
  builder.jump_if_false(yes, 0);
  builder.outputs = {placeholder, list};
  Session session(builder);
  CHECK(session.load() == Status::ok);
  CHECK(session.method.output(0) == nullptr && session.method.output_value(0)->is(ValueKind::none));
  session.floats(0, 0)[2] = 3;
  session.floats(0, 16)[2] = 10;
  CHECK(session.method.execute(nullptr) == Status::ok);
  CHECK(session.method.output(0)->as<float>()[2] == 16.0f);
  const Value& items = *session.method.output_value(1);
  CHECK(items.is(ValueKind::optional_tensor_list) && items.values().size() == 3);
  CHECK(items.values()[0]->is(ValueKind::tensor) && items.values()[1]->is(ValueKind::none));
  CHECK(items.values()[2]->is(ValueKind::tensor));  // the list sees the move
}

void test_delegates() {
  ProgramBuilder builder;
  builder.add_delegate("EthosUBackend", schema::DataLocation::INLINE, 0);
  builder.add_delegate("EthosUBackend", schema::DataLocation::SEGMENT, 1);
  builder.call_delegate(1, {builder.tensor(at(0))});
  Session session(builder);
  CHECK(session.load() == Status::ok && session.method.delegate_count() == 2);
  CHECK(session.delegate.last_index == 1 && session.delegate.last_payload.size() == 32);
  CHECK(session.delegate.last_payload[0] == 16);
  CHECK(session.method.execute(nullptr) == Status::ok && session.delegate.executions == 1);
  session.delegate.refuse_execute = true;
  CHECK(session.method.execute(nullptr) == Status::delegate_failed);
  CHECK(std::strcmp(session.method.error_text(), "instruction 0, EthosUBackend: because") == 0);
  session.delegate.refuse_init = true;
  CHECK(session.load() == Status::delegate_failed);
  CHECK(std::strcmp(session.method.error_text(), "delegate 0: because") == 0);
  session.use_delegate = false;
  CHECK(session.load() == Status::missing_delegate);
}

void test_binding() {
  ProgramBuilder builder;
  TensorRow unbound;
  unbound.memory_id = 0;
  builder.inputs = {builder.tensor(unbound)};
  Session session(builder);
  CHECK(session.load() == Status::ok && session.method.input(0)->data == nullptr);
  Tensor& input = *session.method.input(0);
  CHECK(session.method.bind(input, {session.planned[1].bytes, 15}) == Status::out_of_memory);
  CHECK(session.method.bind(input, {session.planned[1].bytes + 4, 32}) == Status::invalid_argument);
  CHECK(session.method.bind(input, {session.planned[1].bytes, 16}) == Status::ok);
  CHECK(input.data == session.planned[1].bytes);
}

}  // namespace

int main() {
  test_good_program();
  test_every_pool_size();
  test_every_truncation();
  test_misaligned_memory();
  test_bad_tensors();
  test_bad_tables();
  test_bad_instructions();
  test_constants_and_initial_state();
  test_moves_lists_and_jumps();
  test_delegates();
  test_binding();
  return host::failed_checks == 0 ? 0 : 1;
}
