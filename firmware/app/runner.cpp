#include "app/runner.hpp"

#include <algorithm>
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
  report_faults();
}

void Runner::report_faults() {
  fault_records = &records_;
  hal::set_fault_reporter(report_fault);
}

int Runner::run(const RunnerSetup& setup) {
  setup_ = setup;
  delegate_.use(setup.npu_memory, setup.npu_timeout_ms);
  methods_.use(setup.methods, setup.model, setup.kernels);
  announce();
  return finish(open_npu() && load_methods() && open_inputs() && infer_all());
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
  if (sequence_.calls() == 0 && !infer_sets(0, image_.sets())) {
    return false;
  }
  for (std::uint32_t number = 0, first = 0; number < sequence_.calls(); ++number) {
    const std::uint32_t end = first + sequence_.call(number).sets;
    if (!begin_call(number, first) || !infer_sets(first, end)) {
      return false;
    }
    first = end;
  }
  ETHOSU_LOG_INFO(inference_, " inferences finished");
  return true;
}

// A feed that stops skips what is left of the sets before `end`.
bool Runner::infer_sets(std::uint32_t first, std::uint32_t end) {
  bool stops = false;
  for (std::uint32_t set = first; set < end && !stops; ++set) {
    for (std::uint32_t repeat = 0; repeat < image_.repeats(); ++repeat) {
      if (!infer(set, repeat)) {
        return false;
      }
      const bool is_last = repeat + 1 == image_.repeats();
      Failure failure;
      if (is_last && !feeding_.prepare_next(method(), set, inference_, failure)) {
        return fail(failure);
      }
      stops = feeding_.stops();
      const bool last = set + 1 == end || stops;
      state_.report(planned(), inference_, last && is_last && image_.sends_state());
      if (!report_outputs(repeat == 0, last || !image_.sends_last())) {
        return false;
      }
      ++inference_;
    }
  }
  return true;
}

// Its first set may take outputs of the call before, which still lie in memory.
bool Runner::begin_call(std::uint32_t number, std::uint32_t set) {
  const runtime::Method& before = method();
  const std::uint32_t index = sequence_.call(number).method;
  methods_.select(index);
  call_begun_ = inference_;
  records_.write(protocol::call, number, methods_.setup().name);
  Failure failure;
  return number == 0 || feeding_.take(before, method(), set, inference_, failure) || fail(failure);
}

void Runner::announce() {
  const auto bytes = static_cast<std::uint32_t>(setup_.model.size());
  char digest[sha256_hex_size];
  sha256_hex(setup_.model.data(), setup_.model.size(), digest);
  const char* const hex = digest;
  records_.write(protocol::boot, protocol::version, setup_.firmware, hal::board_name(), bytes, hex);
  ETHOSU_LOG_INFO("PTE Model data loaded. Size: ", bytes, " bytes.");
  for (std::uint32_t i = 0; i < setup_.data_files.size(); ++i) {
    const Span<const std::uint8_t> file = setup_.data_files[i];
    sha256_hex(file.data(), file.size(), digest);
    records_.write(protocol::data_file, i, static_cast<std::uint32_t>(file.size()), hex);
  }
}

bool Runner::open_npu() {
  if (methods_.delegates() == 0) {
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

// All before the first inference: loading writes the initial values of the program's own tensors, and methods
// may share those.
bool Runner::load_methods() {
  ErrorText reason;
  if (const Status status = methods_.open_data(setup_.data_files, reason); status != Status::ok) {
    return fail("load", status_name(status), reason.c_str());
  }
  for (std::uint32_t index = 0; index < methods_.count(); ++index) {
    methods_.select(index);
    const char* const name = methods_.setup().name;
    ETHOSU_LOG_INFO("Running method ", name);
    if (const Status status = methods_.load(index); status != Status::ok) {
      return fail_method("load", status);
    }
    records_.write(protocol::method, name, method().input_count(), method().output_count(),
                   method().delegate_count());
    ETHOSU_LOG_INFO("Method '", name, "' loaded.");
  }
  methods_.select(0);
  return true;
}

bool Runner::open_inputs() {
  Failure failure;
  if (setup_.files != nullptr && !setup_.files->provide_inputs(method(), failure)) {
    return fail(failure);
  }
  const ImageError error =
      image_.open(setup_.input_pool.data(), setup_.input_pool.size(), methods_.most_inputs());
  if (error != ImageError::none) {
    return fail("inputs", image_error_name(error), "the input image at ",
                Hex{static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(setup_.input_pool.data()))},
                " of ", setup_.input_pool.size(), " bytes, for ", methods_.most_inputs(), " inputs");
  }
  if (!sequence_.open({setup_.input_pool.data(), image_.bytes()}, image_.sequence_at(),
                      methods_.most_inputs()) ||
      !sequence_.calls_fit(methods_.count(), image_.sets())) {
    return fail("inputs", "wrong_sequence", "the sequence block at ", image_.sequence_at());
  }
  return begin_state();
}

// The values of the state that the image brings.
bool Runner::begin_state() {
  Failure failure;
  return state_.begin(planned(), failure) || fail(failure);
}

bool Runner::infer(std::uint32_t set, std::uint32_t repeat) {
  delegate_calls_ = 0;
  const bool cut = image_.pieces() != 0 && repeat + 1 == image_.repeats();
  delegate_.cut(cut ? &image_ : nullptr);
  if (!select_events(repeat)) {
    return false;
  }
  if (repeat != 0 && image_.resets_state()) {
    // Loading writes the initial values of the program's own tensors; what else lies in its memory is of the
    // inference before, and no state.
    for (const Span<std::uint8_t> buffer : planned()) {
      std::fill(buffer.begin(), buffer.end(), std::uint8_t{0});
    }
    if (const Status status = methods_.load(methods_.chosen()); status != Status::ok) {
      return fail_method("load", status);
    }
    if (!begin_state()) {
      return false;
    }
  }
  // Before every inference: planned inputs share memory with what is computed later.
  for (std::uint32_t index = 0; index < method().input_count(); ++index) {
    if (!set_input(set, index)) {
      return false;
    }
  }
  begun_ = hal::clock_cycles();
  hal::mark_operator();
  const Status status = method().execute(this);
  hal::mark_end();
  if (status != Status::ok) {
    return fail_method("execute", status);
  }
  records_.write(protocol::inference, inference_, delegate_calls_);
  return true;
}

bool Runner::select_events(std::uint32_t repeat) {
  if (methods_.delegates() == 0 || image_.event_groups() == 0) {
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
  Tensor* const tensor = method().input(index);
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
    const Status status = method().bind(
        tensor, {setup_.input_pool.data() + (bytes.data() - setup_.input_pool.data()), bytes.size()});
    if (status != Status::ok) {
      return fail_method("inputs", status);
    }
  }
  std::memmove(tensor.data, bytes.data(), bytes.size());
  return true;
}

bool Runner::report_outputs(bool first, bool whole) {
  for (std::uint32_t index = 0; index < method().output_count(); ++index) {
    if (!report_output(index, first, whole)) {
      return false;
    }
  }
  return true;
}

// The bytes of an output are sent once, if `whole` asks for them, and again whenever they have changed since.
bool Runner::report_output(std::uint32_t index, bool first, bool whole) {
  const Tensor* const tensor = method().output(index);
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
  use("method_pool", methods_.pool_used(), methods_.pool_bytes());
  use("input_image", image_.bytes(), setup_.input_pool.size());
}

void Runner::on_instruction(std::uint32_t index, const char* kind, const char* name) {
  hal::mark_report();
  const std::uint64_t cycles = hal::clock_cycles() - begun_;
  if (inference_ == call_begun_) {
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
  return fail(stage, status_name(status), method().error_text());
}

}  // namespace ethosu_sdk::app
