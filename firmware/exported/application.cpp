// One program on ExecuTorch's runtime. It prints the records of the SDK's own firmware
// (sdk/ethosu_sdk/program/protocol.py), so that `ethosu-sdk parse-log` reads its console.

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/core/hierarchical_allocator.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include <algorithm>
#include <cstring>

#include "app/crc32.hpp"
#include "app/input_image.hpp"
#include "app/record_writer.hpp"
#include "app/sha256.hpp"
#include "exported/platform.hpp"
#include "exported/program.hpp"

// Method::step, which ExecuTorch marks as deprecated while it may change: without it, nothing tells the
// instructions apart.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace ethosu_sdk::exported {
namespace {

namespace protocol = app::protocol;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using executorch::extension::BufferDataLoader;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::HierarchicalAllocator;
using executorch::runtime::MemoryAllocator;
using executorch::runtime::MemoryManager;
using executorch::runtime::Method;
using executorch::runtime::MethodMeta;
using executorch::runtime::Program;
using executorch::runtime::Result;

constexpr std::size_t most_buffers = 8;       // planned buffers of a method
constexpr std::size_t most_dimensions = 16;   // of a tensor, as in ExecuTorch
constexpr std::size_t tensor_alignment = 16;  // of planned buffers, by which ExecuTorch plans
constexpr const char* delegate_kind = "delegate";

class Console final : public Sink {
 public:
  void put(char character) override { console_put(character); }
};

// An allocator that knows the most that was ever in use.
class Pool final : public MemoryAllocator {
 public:
  explicit Pool(Span<std::uint8_t> memory)
      : MemoryAllocator(static_cast<std::uint32_t>(memory.size()), memory.data()) {}

  void* allocate(std::size_t size, std::size_t alignment = kDefaultAlignment) override {
    void* const found = MemoryAllocator::allocate(size, alignment);
    most_ = std::max(most_, used_size());
    return found;
  }
  std::size_t most() const { return most_; }

 private:
  std::size_t most_ = 0;
};

// NumPy's name of a type; nullptr where it has none.
const char* type_name(ScalarType type) {
  switch (type) {
    case ScalarType::Byte:
      return "uint8";
    case ScalarType::Char:
      return "int8";
    case ScalarType::Short:
      return "int16";
    case ScalarType::Int:
      return "int32";
    case ScalarType::Long:
      return "int64";
    case ScalarType::Half:
      return "float16";
    case ScalarType::Float:
      return "float32";
    case ScalarType::Double:
      return "float64";
    case ScalarType::Bool:
      return "bool";
    default:
      return nullptr;
  }
}

class Application {
 public:
  explicit Application(const ProgramSetup& setup)
      : setup_(setup), method_pool_(setup.method_pool), temporary_pool_(setup.temporary_pool) {}

  int run() {
    announce();
    return finish(run_method());
  }

 private:
  void announce() {
    const auto bytes = static_cast<std::uint32_t>(setup_.model.size());
    char digest[app::sha256_hex_size];
    app::sha256_hex(setup_.model.data(), setup_.model.size(), digest);
    const char* const hex = digest;
    records_.write(protocol::boot, protocol::version, "ethosu-sdk application on ExecuTorch", board_name(),
                   bytes, hex);
  }

  bool run_method() {
    BufferDataLoader loader(setup_.model.data(), setup_.model.size());
    // A build of ExecuTorch without the verifier says so and goes on.
    const Result<Program> program = Program::load(&loader, Program::Verification::InternalConsistency);
    if (!program.ok()) {
      return fail("load", program.error(), "the program");
    }
    const Result<MethodMeta> meta = program->method_meta(setup_.method);
    if (!meta.ok()) {
      return fail("load", meta.error(), "the method");
    }
    executorch::runtime::Span<std::uint8_t> buffers[most_buffers];
    if (!place_buffers(*meta, buffers)) {
      return false;
    }
    HierarchicalAllocator planned({buffers, meta->num_memory_planned_buffers()});
    MemoryManager memory(&method_pool_, &planned, &temporary_pool_);
    Result<Method> method = program->load_method(setup_.method, &memory);
    if (!method.ok()) {
      return fail("load", method.error(), "the method: is a kernel, the backend or memory missing?");
    }
    std::uint32_t delegates = 0;
    for (const Instruction& row : setup_.instructions) {
      delegates += std::strcmp(row.kind, delegate_kind) == 0;
    }
    records_.write(protocol::method, setup_.method, meta->num_inputs(), meta->num_outputs(), delegates);
    return infer_all(*method, *meta);
  }

  // Each behind the one before, at a multiple of 16.
  bool place_buffers(const MethodMeta& meta, executorch::runtime::Span<std::uint8_t>* buffers) {
    if (meta.num_memory_planned_buffers() > most_buffers) {
      return fail("load", Error::MemoryAllocationFailed, "too many planned buffers");
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
      const auto size = static_cast<std::size_t>(meta.memory_planned_buffer_size(i).get());
      at = (at + tensor_alignment - 1) / tensor_alignment * tensor_alignment;
      if (at > setup_.planned.size() || size > setup_.planned.size() - at) {
        return fail("load", Error::MemoryAllocationFailed, "the planned buffers");
      }
      buffers[i] = {setup_.planned.data() + at, size};
      at += size;
    }
    planned_bytes_ = at;
    std::memset(setup_.planned.data(), 0, setup_.planned.size());
    return true;
  }

  bool infer_all(Method& method, const MethodMeta& meta) {
    const app::ImageError error =
        image_.open(setup_.input_image.data(), setup_.input_image.size(), meta.num_inputs());
    if (error != app::ImageError::none) {
      return fail_with("inputs", app::image_error_name(error), "the input image");
    }
    for (std::uint32_t set = 0; set < image_.sets(); ++set) {
      for (std::uint32_t repeat = 0; repeat < image_.repeats(); ++repeat) {
        if (!infer(method, meta, set, repeat) || !report_outputs(method, repeat == 0)) {
          return false;
        }
        ++inference_;
      }
    }
    return true;
  }

  bool infer(Method& method, const MethodMeta& meta, std::uint32_t set, std::uint32_t repeat) {
    // Before every inference: planned inputs share memory with what is computed later.
    for (std::uint32_t index = 0; index < meta.num_inputs(); ++index) {
      if (!set_input(method, meta, set, index)) {
        return false;
      }
    }
    if (!select_events(repeat)) {
      return false;
    }
    delegate_calls_ = 0;
    for (std::uint32_t number = 0;; ++number) {
      const Error error = method.step();
      if (error == Error::EndOfMethod) {
        break;
      }
      if (error != Error::Ok) {
        return fail("execute", error,
                    number < setup_.instructions.size() ? setup_.instructions[number].name : "");
      }
      if (number >= setup_.instructions.size()) {
        return fail("execute", Error::InvalidProgram, "more instructions than the program has");
      }
      report_instruction(number);
    }
    if (const Error error = method.reset_execution(); error != Error::Ok) {
      return fail("execute", error, "the next inference");
    }
    records_.write(protocol::inference, inference_, delegate_calls_);
    return true;
  }

  bool select_events(std::uint32_t repeat) {
    std::uint16_t events[protocol::input_image_max_events];
    std::uint32_t count = 0;
    if (image_.event_groups() != 0) {
      const std::uint32_t group = repeat % image_.event_groups();
      for (; count < image_.event_count(group); ++count) {
        events[count] = image_.event(group, count);
      }
    }
    return select_npu_events(events, count) ||
           fail_with("inputs", "too_many_events", "more PMU events than the NPU counts");
  }

  bool set_input(Method& method, const MethodMeta& meta, std::uint32_t set, std::uint32_t index) {
    const Bytes bytes = image_.input(set, index);
    records_.write(protocol::input, inference_, index, bytes.size(),
                   app::Crc32Digits{app::crc32(bytes.data(), bytes.size())});
    const auto tensor = meta.input_tensor_meta(index);
    if (!tensor.ok()) {  // it keeps the value that the program gives it
      return bytes.empty() || fail("inputs", tensor.error(), "an input that is not a tensor");
    }
    if (tensor->nbytes() != bytes.size()) {
      return fail("inputs", Error::InvalidArgument, "an input of another size");
    }
    std::uint8_t* const data = setup_.input_image.data() + (bytes.data() - setup_.input_image.data());
    TensorImpl implementation(tensor->scalar_type(), static_cast<ssize_t>(tensor->sizes().size()),
                              const_cast<TensorImpl::SizesType*>(tensor->sizes().data()), data,
                              const_cast<TensorImpl::DimOrderType*>(tensor->dim_order().data()));
    const Error error = method.set_input(EValue(Tensor(&implementation)), index);
    return error == Error::Ok || fail("inputs", error, "an input was refused");
  }

  void report_instruction(std::uint32_t number) {
    const Instruction& row = setup_.instructions[number];
    if (inference_ == 0) {
      records_.write(protocol::instruction, inference_, number, row.kind, row.name);
    }
    if (std::strcmp(row.kind, delegate_kind) != 0) {
      return;
    }
    ++delegate_calls_;
    NpuJob job;
    NpuIdentity identity;
    if (!take_npu_job(job, identity)) {
      return;
    }
    if (!identified_) {
      records_.write(protocol::npu, identity.id, identity.config);
      identified_ = true;
    }
    app::NumberPair pairs[most_events];
    for (std::uint32_t i = 0; i < job.count; ++i) {
      pairs[i] = {job.events[i], job.values[i]};
    }
    records_.write(protocol::pmu, inference_, number, job.cycles, job.overflow,
                   Span<const app::NumberPair>{pairs, job.count});
  }

  bool report_outputs(Method& method, bool whole) {
    for (std::uint32_t index = 0; index < method.outputs_size(); ++index) {
      const EValue& value = method.get_output(index);
      const char* const type = value.isTensor() ? type_name(value.toTensor().scalar_type()) : nullptr;
      if (type == nullptr) {
        return fail("outputs", Error::InvalidType, "an output that is not a tensor of a known type");
      }
      report_output(value.toTensor(), type, index, whole);
    }
    return true;
  }

  // Of a repeat the CRC alone, unless it is another one than before.
  void report_output(const Tensor& tensor, const char* type, std::uint32_t index, bool whole) {
    std::int32_t sizes[most_dimensions];
    const auto rank = static_cast<std::size_t>(tensor.dim());
    std::copy_n(tensor.sizes().data(), rank, sizes);
    const Bytes bytes{static_cast<const std::uint8_t*>(tensor.const_data_ptr()), tensor.nbytes()};
    const std::uint32_t crc = app::crc32(bytes.data(), bytes.size());
    records_.write(protocol::output, inference_, index, type, Span<const std::int32_t>{sizes, rank},
                   bytes.size(), app::Crc32Digits{crc});
    const bool known = index < remembered_outputs && !whole && sent_crcs_[index] == crc;
    if (index < remembered_outputs) {
      sent_crcs_[index] = crc;
    }
    for (std::size_t at = 0; at < bytes.size() && !known; at += protocol::data_chunk_bytes) {
      const std::size_t left = bytes.size() - at;
      const std::size_t chunk = std::min<std::size_t>(left, protocol::data_chunk_bytes);
      records_.write(protocol::data, inference_, index, at, app::Base64{{bytes.data() + at, chunk}});
    }
  }

  int finish(bool passed) {
    records_.write(protocol::memory, "planned", planned_bytes_, setup_.planned.size());
    records_.write(protocol::memory, "method_pool", method_pool_.most(), setup_.method_pool.size());
    records_.write(protocol::memory, "temp_pool", temporary_pool_.most(), setup_.temporary_pool.size());
    records_.write(protocol::memory, "input_image", image_.bytes(), setup_.input_image.size());
    char seal[app::sha256_hex_size];
    records_.seal(image_.nonce(), seal);
    const char* const hex = seal;
    records_.write(protocol::end, passed ? protocol::status_ok : protocol::status_error, inference_,
                   records_.count() + 1, hex);
    return passed ? 0 : 1;
  }

  bool fail(const char* stage, Error error, const char* what) {
    Text<16> code;
    write_all(code, Hex{static_cast<std::uint32_t>(error)});
    return fail_with(stage, code.c_str(), what);
  }

  bool fail_with(const char* stage, const char* code, const char* what) {
    records_.write(protocol::error, stage, code, what);
    return false;
  }

  static constexpr std::size_t remembered_outputs = 16;

  ProgramSetup setup_;
  Pool method_pool_;
  Pool temporary_pool_;
  Console console_;
  app::RecordWriter records_{console_};
  app::InputImage image_;
  std::size_t planned_bytes_ = 0;
  std::uint32_t inference_ = 0;
  std::uint32_t delegate_calls_ = 0;
  std::uint32_t sent_crcs_[remembered_outputs] = {};
  bool identified_ = false;
};

}  // namespace

int run_program(const ProgramSetup& setup) {
  executorch::runtime::runtime_init();
  Application application(setup);
  return application.run();
}

}  // namespace ethosu_sdk::exported
