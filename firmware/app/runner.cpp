#include "app/runner.hpp"

#include <cstring>

#include "app/crc32.hpp"
#include "app/log.hpp"
#include "app/sha256.hpp"
#include "hal/board.hpp"
#include "hal/clock.hpp"
#include "hal/fault.hpp"
#include "hal/marks.hpp"
#include "hal/memory.hpp"
#include "hal/uart.hpp"

namespace ethosu_sdk::app {
namespace {

RecordWriter* fault_records = nullptr;  // the run's writer: its sequence numbers go on

void report_fault(const hal::Fault& fault) {
  Console console;
  console.put('\n');  // the fault may have cut a line
  fault_records->write(protocol::fault, fault.cause, fault.pc, fault.lr, fault.sp, fault.xpsr, fault.cfsr,
                       fault.hfsr, fault.address);
}

}  // namespace

void Runner::open() {
  hal::uart_open();
  hal::clock_open();
  fault_records = &records_;
  hal::set_fault_reporter(report_fault);
}

int Runner::run(const RunnerSetup& setup) {
  setup_ = setup;
  delegate_.use(setup.npu_memory, setup.npu_timeout_ms);
  announce();
  return finish(open_npu() && load_method() && open_inputs() && infer_all());
}

int Runner::refuse(const Failure& failure) {
  return finish(fail(failure));
}

int Runner::finish(bool passed) {
  report_memory();
  char seal[sha256_hex_size];
  records_.seal(image_.nonce(), seal);
  const char* const hex = seal;
  records_.write(protocol::end, passed ? protocol::status_ok : protocol::status_error, inference_,
                 records_.count() + 1, hex);
  ETHOSU_LOG_INFO("Program complete, exiting.");
  return passed ? 0 : 1;
}

bool Runner::infer_all() {
  ETHOSU_LOG_INFO("Starting running ", image_.sets() * image_.repeats(), " inferences...");
  for (std::uint32_t set = 0; set < image_.sets() && !feeding_.stops(); ++set) {
    for (std::uint32_t repeat = 0; repeat < image_.repeats(); ++repeat) {
      if (!infer(set, repeat)) {
        return false;
      }
      ++inference_;
    }
  }
  ETHOSU_LOG_INFO(inference_, " inferences finished");
  return true;
}

void Runner::announce() {
  const auto bytes = static_cast<std::uint32_t>(setup_.model.size());
  char digest[sha256_hex_size];
  sha256_hex(setup_.model.data(), setup_.model.size(), digest);
  const char* const hex = digest;
  records_.write(protocol::boot, protocol::version, setup_.firmware, hal::board_name(), bytes, hex);
  ETHOSU_LOG_INFO("PTE Model data loaded. Size: ", bytes, " bytes.");
}

bool Runner::open_npu() {
  if (setup_.npu_memory.payloads.size() == 0) {
    return true;
  }
  const npu::Result result = npu_.open(setup_.memory_mode);
  if (!result.ok()) {
    const npu::ValueNames names = npu::value_names(result.code);
    return fail("npu", npu::code_name(result.code), names.found, " ", Hex{result.found});
  }
  records_.write(protocol::npu, npu_.identity().id, npu_.identity().config);
  return true;
}

bool Runner::load_method() {
  ETHOSU_LOG_INFO("Running method ", setup_.method);
  const Status status = method_.load(setup_.model, setup_.method, setup_.memory, setup_.kernels, &delegate_);
  if (status != Status::ok) {
    return fail_method("load", status);
  }
  records_.write(protocol::method, setup_.method, method_.input_count(), method_.output_count(),
                 method_.delegate_count());
  ETHOSU_LOG_INFO("Method '", setup_.method, "' loaded.");
  return true;
}

bool Runner::open_inputs() {
  Failure failure;
  if (setup_.files != nullptr && !setup_.files->provide_inputs(method_, failure)) {
    return fail(failure);
  }
  const ImageError error =
      image_.open(setup_.input_pool.data(), setup_.input_pool.size(), method_.input_count());
  if (error != ImageError::none) {
    return fail("inputs", image_error_name(error), "the input image at ",
                Hex{static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(setup_.input_pool.data()))},
                " of ", setup_.input_pool.size(), " bytes, for ", method_.input_count(), " inputs");
  }
  if (!sequence_.open({setup_.input_pool.data(), image_.bytes()}, image_.sequence_at(),
                      method_.input_count())) {
    return fail("inputs", "wrong_sequence", "the sequence block at ", image_.sequence_at());
  }
  return begin_state();
}

// The values of the state that the image brings.
bool Runner::begin_state() {
  for (std::uint32_t i = 0; i < sequence_.states(); ++i) {
    const StateTensor tensor = sequence_.state(i);
    const Span<std::uint8_t> memory = memory_of(tensor);
    if (memory.data() == nullptr) {
      return fail("inputs", "wrong_state", "tensor ", i, " of the state lies outside of its planned buffer");
    }
    if (!tensor.initial.empty()) {
      std::memcpy(memory.data(), tensor.initial.data(), tensor.initial.size());
    }
  }
  return true;
}

// Nothing for a tensor that does not lie in its buffer.
Span<std::uint8_t> Runner::memory_of(const StateTensor& tensor) const {
  if (tensor.buffer >= setup_.memory.planned.size()) {
    return {};
  }
  const Span<std::uint8_t> buffer = setup_.memory.planned[tensor.buffer];
  if (tensor.offset > buffer.size() || tensor.bytes > buffer.size() - tensor.offset) {
    return {};
  }
  return {buffer.data() + tensor.offset, tensor.bytes};
}

void Runner::report_state(bool whole) {
  for (std::uint32_t i = 0; i < sequence_.states(); ++i) {
    const Span<std::uint8_t> memory = memory_of(sequence_.state(i));
    records_.write(protocol::state, inference_, i, memory.size(),
                   Crc32Digits{crc32(memory.data(), memory.size())});
    for (std::size_t offset = 0; whole && offset < memory.size(); offset += protocol::data_chunk_bytes) {
      const std::size_t left = memory.size() - offset;
      const std::size_t chunk = left < protocol::data_chunk_bytes ? left : protocol::data_chunk_bytes;
      records_.write(protocol::state_data, i, offset, Base64{{memory.data() + offset, chunk}});
    }
  }
}

bool Runner::infer(std::uint32_t set, std::uint32_t repeat) {
  delegate_calls_ = 0;
  const bool cut = image_.pieces() != 0 && repeat + 1 == image_.repeats();
  delegate_.cut(cut ? &image_ : nullptr);
  if (!select_events(repeat)) {
    return false;
  }
  if (repeat != 0 && image_.resets_state()) {
    // Loading writes the initial values of the program's own tensors.
    const Status status =
        method_.load(setup_.model, setup_.method, setup_.memory, setup_.kernels, &delegate_);
    if (status != Status::ok) {
      return fail_method("load", status);
    }
    if (!begin_state()) {
      return false;
    }
  }
  // Before every inference: planned inputs share memory with what is computed later.
  for (std::uint32_t index = 0; index < method_.input_count(); ++index) {
    if (!set_input(set, index)) {
      return false;
    }
  }
  begun_ = hal::clock_cycles();
  hal::mark_operator();
  const Status status = method_.execute(this);
  hal::mark_end();
  if (status != Status::ok) {
    return fail_method("execute", status);
  }
  records_.write(protocol::inference, inference_, delegate_calls_);
  if (repeat + 1 == image_.repeats()) {
    Failure failure;
    if (!feeding_.prepare_next(set, inference_, failure)) {
      return fail(failure);
    }
  }
  const bool last = set + 1 == image_.sets() || feeding_.stops();
  report_state(last && repeat + 1 == image_.repeats());
  return report_outputs(repeat == 0, last || !image_.sends_last());
}

bool Runner::select_events(std::uint32_t repeat) {
  if (setup_.npu_memory.payloads.size() == 0 || image_.event_groups() == 0) {
    return true;
  }
  const std::uint32_t group = repeat % image_.event_groups();
  std::uint16_t events[protocol::input_image_max_events];
  for (std::uint32_t i = 0; i < image_.event_count(group); ++i) {
    events[i] = image_.event(group, i);
  }
  const npu::Result result = npu_.select_events(events, image_.event_count(group));
  return result.ok() || fail("inputs", npu::code_name(result.code), result.found,
                             " PMU events, the NPU counts ", result.expected);
}

bool Runner::set_input(std::uint32_t set, std::uint32_t index) {
  const Bytes bytes = image_.input(set, index);
  Tensor* const tensor = method_.input(index);
  const bool is_scalar =
      tensor == nullptr && bytes.size() == 0;  // it keeps the value that the program gives it
  if (!is_scalar && (tensor == nullptr || tensor->constant)) {
    return fail("inputs", "not_a_tensor", "input ", index, " is not a tensor that can be written");
  }
  if (!is_scalar && tensor->byte_count() != bytes.size()) {
    return fail("inputs", "wrong_size", "input ", index, " of inference ", inference_, " has ", bytes.size(),
                " bytes, the method takes ", tensor->byte_count());
  }
  if (!is_scalar && !bind_input(*tensor, bytes)) {
    return false;
  }
  records_.write(protocol::input, inference_, index, bytes.size(),
                 Crc32Digits{crc32(bytes.data(), bytes.size())});
  return true;
}

// An input that the program plans no memory for gets the image's.
bool Runner::bind_input(Tensor& tensor, Bytes bytes) {
  if (tensor.data == nullptr) {
    const Status status = method_.bind(
        tensor, {setup_.input_pool.data() + (bytes.data() - setup_.input_pool.data()), bytes.size()});
    if (status != Status::ok) {
      return fail_method("inputs", status);
    }
  }
  std::memmove(tensor.data, bytes.data(), bytes.size());
  return true;
}

bool Runner::report_outputs(bool first, bool whole) {
  for (std::uint32_t index = 0; index < method_.output_count(); ++index) {
    if (!report_output(index, first, whole)) {
      return false;
    }
  }
  return true;
}

// The bytes of an output are sent once, if `whole` asks for them, and again whenever they have changed since.
bool Runner::report_output(std::uint32_t index, bool first, bool whole) {
  const Tensor* const tensor = method_.output(index);
  if (tensor == nullptr && setup_.files != nullptr) {  // as ExecuTorch's runner does: no file for it
    ETHOSU_LOG_INFO("Output ", index, " is not a tensor.");
    return true;
  }
  if (tensor == nullptr || tensor->data == nullptr) {
    return fail("outputs", "not_a_tensor", "output ", index, " is not a tensor with planned memory");
  }
  const Bytes bytes{static_cast<const std::uint8_t*>(tensor->data), tensor->byte_count()};
  const std::uint32_t crc = crc32(bytes.data(), bytes.size());
  records_.write(protocol::output, inference_, index, scalar_type_name(tensor->dtype),
                 Span<const std::int32_t>{tensor->sizes, tensor->rank}, bytes.size(), Crc32Digits{crc});
  if (!whole) {
    return true;
  }
  if (index < remembered_outputs) {
    if (!first && sent_crcs_[index] == crc) {
      return true;
    }
    sent_crcs_[index] = crc;
  }
  return send_output(index, bytes);
}

bool Runner::send_output(std::uint32_t index, Bytes bytes) {
  if (setup_.files != nullptr) {
    Failure failure;
    return setup_.files->take_output(index, bytes, failure) || fail(failure);
  }
  for (std::size_t offset = 0; offset < bytes.size(); offset += protocol::data_chunk_bytes) {
    const std::size_t left = bytes.size() - offset;
    const std::size_t chunk = left < protocol::data_chunk_bytes ? left : protocol::data_chunk_bytes;
    records_.write(protocol::data, inference_, index, offset, Base64{{bytes.data() + offset, chunk}});
  }
  return true;
}

void Runner::report_memory() {
  const auto use = [this](const char* name, std::size_t used, std::size_t size) {
    if (size != 0) {
      records_.write(protocol::memory, name, used, size);
    }
  };
  use("stack", hal::stack_used(), hal::stack_size());
  use("scratch", delegate_.scratch_used(), setup_.npu_memory.scratch.size());
  use("method_pool", method_.pool_used(), setup_.memory.method_pool.size());
  use("input_image", image_.bytes(), setup_.input_pool.size());
}

void Runner::on_instruction(std::uint32_t index, const char* kind, const char* name) {
  hal::mark_report();
  const std::uint64_t cycles = hal::clock_cycles() - begun_;
  if (inference_ == 0) {
    records_.write(protocol::instruction, inference_, index, kind, name);
    if (image_.counts_cycles()) {
      records_.write(protocol::cpu, inference_, index, cycles);
    }
  }
  begun_ = hal::clock_cycles();
  hal::mark_operator();
}

void Runner::on_job(std::uint32_t instruction, const npu::Counters& counters) {
  hal::mark_report();
  NumberPair pairs[npu::max_event_counters];
  for (std::uint32_t i = 0; i < counters.count; ++i) {
    pairs[i] = {counters.events[i].event, counters.events[i].value};
  }
  records_.write(protocol::pmu, inference_, instruction, counters.cycles, counters.overflow,
                 Span<const NumberPair>{pairs, counters.count});
}

template <typename... Pieces>
bool Runner::fail(const char* stage, const char* code, const Pieces&... pieces) {
  Text<200> detail;
  write_all(detail, pieces...);
  records_.write(protocol::error, stage, code, detail.c_str());
  ETHOSU_LOG_ERROR(stage, ": ", code, ": ", detail.c_str());
  return false;
}

bool Runner::fail(const Failure& failure) {
  return fail(failure.stage, failure.code, failure.detail.c_str());
}

// The delegate knows more of its own failures than the runtime does.
bool Runner::fail_method(const char* stage, Status status) {
  const DelegateError& error = delegate_.error();
  if (error.code != nullptr) {
    return fail(stage, error.code, error.detail.c_str());
  }
  return fail(stage, status_name(status), method_.error_text());
}

}  // namespace ethosu_sdk::app
