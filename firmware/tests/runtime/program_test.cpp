// The interpreter on small programs: what it computes, and the memory that it is given.
#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/runtime/session.hpp"
#include "tests/support/check.hpp"

namespace {

using namespace ethosu_sdk;
using namespace ethosu_sdk::host;

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

// FlatBuffers' verifier lets a vector of 64-bit items begin at any multiple of 4.
void test_misaligned_list() {
  ProgramBuilder builder;
  builder.extended_header = false;
  builder.segments = {};
  const std::int64_t marker = 0x1122334455667788;
  builder.integer(1);
  builder.integers({1, marker});  // the 1 becomes the length of the moved list
  std::vector<std::uint8_t> file = builder.finish();
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&marker);
  const auto found = std::search(file.begin(), file.end(), bytes, bytes + sizeof marker);
  CHECK(found != file.end());
  const auto length = static_cast<std::size_t>(found - file.begin()) - 12;
  CHECK((length + 4) % 8 == 0);
  // The list's offset field, which names the place of the vector's length, is moved by 4.
  bool refused = false;
  for (std::size_t place = 0; place + 4 <= file.size(); place += 4) {
    std::uint32_t offset = 0;
    std::memcpy(&offset, file.data() + place, sizeof offset);
    if (offset != 0 && place + offset == length) {
      std::vector<std::uint8_t> moved = file;
      moved[place] = static_cast<std::uint8_t>(moved[place] + 4);
      Session session(moved);
      refused = session.load() == Status::bad_program &&
                std::strcmp(session.method.error_text(), "value 1: a misaligned list") == 0;
    }
  }
  CHECK(refused);
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
  test_misaligned_list();
  test_misaligned_memory();
  test_constants_and_initial_state();
  test_moves_lists_and_jumps();
  test_delegates();
  test_binding();
  return failed_checks == 0 ? 0 : 1;
}
