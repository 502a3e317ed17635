// Which values lie where a delegate takes and leaves them, and with which layout.
#include <cstdint>
#include <vector>

#include "tests/runtime/program_builder.hpp"
#include "tests/runtime/session.hpp"
#include "tests/support/check.hpp"

namespace {

using namespace ethosu_sdk;
using namespace ethosu_sdk::host;

constexpr char quantizer[] = "quantized_decomposed::quantize_per_tensor.out";
constexpr char dequantizer[] = "quantized_decomposed::dequantize_per_tensor.out";
constexpr char layout_copy[] = "dim_order_ops::_clone_dim_order.out";
constexpr char other[] = "test::sum.out";
constexpr char in_place[] = "aten::copy_";

// What a kernel got: where its input and its output lie, and what the input's last dimension is.
struct Call {
  const void* from;
  const void* to;
  std::uint8_t innermost;
};
std::vector<Call> calls;

Status record(KernelContext&, Span<Value* const> values) {
  const Tensor& from = *values[0]->tensor;
  calls.push_back({from.data, values[values.size() - 1]->tensor->data, from.dim_order[3]});
  return Status::ok;
}

constexpr runtime::KernelEntry all[] = {
    {quantizer, record}, {dequantizer, record}, {layout_copy, record}, {other, record}, {in_place, record}};
enum Operator { quantize, dequantize, copy, sum, write };

// One input and one output for each delegate.
class PlacingDelegate final : public runtime::Delegate {
 public:
  Status init(std::uint32_t, Span<const std::uint8_t>, const runtime::NamedBlobs&) override {
    return Status::ok;
  }
  Status execute(std::uint32_t, std::uint32_t, Span<Value* const>) override { return Status::ok; }
  void* place(std::uint32_t index, std::uint32_t position, std::size_t bytes) override {
    return bytes == sizeof places[0][0] && position < 2 ? places[index][position] : nullptr;
  }
  std::uint32_t inputs(std::uint32_t) const override { return 1; }

  std::uint8_t places[2][2][12];
};

// A program that is built step by step and then run; `calls` tells where its values lay.
struct Program {
  Program() {
    calls.clear();
    builder.planned = {0, 512};
    builder.add_operator("quantized_decomposed::quantize_per_tensor", "out");
    builder.add_operator("quantized_decomposed::dequantize_per_tensor", "out");
    builder.add_operator("dim_order_ops::_clone_dim_order", "out");
    builder.add_operator("test::sum", "out");
    builder.add_operator("aten::copy_", "");
    for (int i = 0; i < 2; ++i) {
      builder.add_delegate("EthosUBackend", schema::DataLocation::SEGMENT, 1);
    }
  }

  std::int32_t value(bool channels_last = false, std::int32_t width = 2) {
    TensorRow row;
    row.sizes = {1, 3, 2, width};
    row.dim_order = {0, 1, 2, 3};
    if (channels_last) {
      row.dim_order = {0, 2, 3, 1};
    }
    row.dtype = schema::ScalarType::CHAR;
    row.offset_low = offset;
    offset += 32;
    return builder.tensor(row);
  }
  void call(Operator name, std::int32_t from, std::int32_t to) { builder.call(name, {from, to, to}); }
  void run(std::int32_t from, std::int32_t to, std::int32_t index = 0) {
    builder.call_delegate(index, {from, to});
  }
  void execute() {
    Session session(builder);
    const Span<std::uint8_t> planned = {session.planned[0].bytes, sizeof session.planned[0].bytes};
    const runtime::MemoryPlan memory = {{session.pool.bytes, sizeof session.pool.bytes}, {&planned, 1}};
    CHECK(session.method.load({session.file.front().bytes, session.size}, "forward", memory,
                              {all, sizeof all / sizeof *all}, &delegate) == Status::ok);
    CHECK(session.method.execute(nullptr) == Status::ok);
    input = session.method.input(0)->data;
  }
  const void* taken(int index = 0) const { return delegate.places[index][0]; }
  const void* left(int index = 0) const { return delegate.places[index][1]; }

  ProgramBuilder builder;
  std::uint32_t offset = 0;
  PlacingDelegate delegate;
  const void* input = nullptr;
};

void test_what_kernels_write_and_read_lies_in_the_delegate() {
  Program program;
  const std::int32_t x = program.value(), a = program.value(), b = program.value(), y = program.value();
  program.builder.inputs = {x};
  program.builder.outputs = {y};
  program.call(sum, x, a);
  program.run(a, b);
  program.call(sum, b, y);
  program.execute();
  CHECK(calls[0].to == program.taken() && calls[1].from == program.left());
  CHECK(program.input == calls[0].from && program.input != program.taken() && calls[1].to != program.left());
}

void test_an_input_lies_in_the_delegate_and_an_output_does_not() {
  Program program;
  const std::int32_t x = program.value(), y = program.value(), z = program.value();
  program.builder.inputs = {x};
  program.builder.outputs = {y, z};
  program.run(x, y);
  program.call(sum, y, z);
  program.execute();
  CHECK(program.input == program.taken() && calls[0].from != program.left());
}

void test_what_others_read_stays() {
  for (const Operator reader : {sum, write}) {
    Program program;
    const std::int32_t x = program.value(), a = program.value(), b = program.value(), y = program.value();
    program.builder.inputs = {x};
    program.builder.outputs = {y};
    program.call(sum, x, a);
    program.run(a, b);
    program.call(reader, reader == sum ? a : b, y);
    program.execute();
    CHECK((calls[0].to == program.taken()) == (reader == write));
    CHECK(calls[1].from != program.left());
  }
}

// The second delegate's call, or its input, would overwrite the first one's output.
void test_calls_of_delegates_end_what_a_place_holds() {
  for (const bool early : {true, false}) {
    Program program;
    const std::int32_t x = program.value(), a = program.value(), b = program.value(), c = program.value(),
                       d = program.value(), y = program.value(), z = program.value();
    program.builder.inputs = {x};
    program.builder.outputs = {y, z};
    program.call(sum, x, a);
    if (early) {
      program.call(sum, x, c);
    }
    program.run(a, b, 0);
    if (!early) {
      program.call(sum, x, c);
    }
    program.call(sum, b, y);
    program.run(c, d, 1);
    program.call(sum, d, z);
    program.execute();
    CHECK(calls[0].to == program.taken(0) && calls[3].from == program.left(1));
    CHECK((calls[1].to == program.taken(1)) == !early);
    CHECK((calls[2].from == program.left(0)) == early);
  }
}

void test_the_size_must_be_the_delegates() {
  Program program;
  const std::int32_t x = program.value(false, 1), a = program.value(false, 1), b = program.value();
  program.builder.inputs = {x};
  program.builder.outputs = {b};
  program.call(sum, x, a);
  program.run(a, b);
  program.execute();
  CHECK(calls[0].to != program.taken());
}

// A copy to the delegate's layout: a quantiser writes it itself, other kernels cannot.
void test_copies_between_layouts_are_skipped_for_kernels_that_need_none() {
  for (const Operator writer : {quantize, sum}) {
    Program program;
    const std::int32_t x = program.value(), a = program.value(), b = program.value(true),
                       c = program.value(true), d = program.value(), y = program.value();
    program.builder.inputs = {x};
    program.builder.outputs = {y};
    program.call(writer, x, a);
    program.call(copy, a, b);
    program.run(b, c);
    program.call(copy, c, d);
    program.call(writer == quantize ? dequantize : sum, d, y);
    program.execute();
    const bool skipped = writer == quantize;
    CHECK((calls[0].to == program.taken()) == skipped);
    CHECK(calls[1].to == program.taken() && calls[1].innermost == (skipped ? 1 : 3));
    CHECK(calls[2].from == program.left() && calls[2].innermost == 1);
    CHECK((calls[3].from == program.left()) == skipped && calls[3].innermost == (skipped ? 1 : 3));
  }
}

// The CPU reads what the NPU reads too: in its own layout.
void test_a_copy_for_one_of_two_readers_is_made() {
  Program program;
  const std::int32_t x = program.value(), a = program.value(), b = program.value(true), c = program.value(),
                     y = program.value(), z = program.value();
  program.builder.inputs = {x};
  program.builder.outputs = {y, z};
  program.call(quantize, x, a);
  program.call(copy, a, b);
  program.run(b, c);
  program.call(dequantize, c, y);
  program.call(dequantize, a, z);
  program.execute();
  CHECK(calls[0].to != program.taken() && calls[1].from == calls[0].to && calls[1].to == program.taken());
  CHECK(calls[1].innermost == 3 && calls[3].innermost == 3 && calls[3].from == calls[0].to);
}

}  // namespace

int main() {
  test_what_kernels_write_and_read_lies_in_the_delegate();
  test_an_input_lies_in_the_delegate_and_an_output_does_not();
  test_what_others_read_stays();
  test_calls_of_delegates_end_what_a_place_holds();
  test_the_size_must_be_the_delegates();
  test_copies_between_layouts_are_skipped_for_kernels_that_need_none();
  test_a_copy_for_one_of_two_readers_is_made();
  return host::failed_checks == 0 ? 0 : 1;
}
