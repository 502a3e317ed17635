// Runs one `.pte` on ExecuTorch's own runtime and lets the process at the other end of a socket execute
// the Ethos-U delegates. See wire.py for the messages; the numbers here and there must agree.
//
// Usage: runner MODEL.pte METHOD,... own|shared FD [DATA.ptd...]

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "named_data.hpp"
#include "planned_memory.hpp"

namespace {

using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using executorch::extension::BufferDataLoader;
using executorch::extension::MallocMemoryAllocator;
using executorch::runtime::ArrayRef;
using executorch::runtime::Backend;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::BackendInterface;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::HierarchicalAllocator;
using executorch::runtime::MemoryManager;
using executorch::runtime::Method;
using executorch::runtime::MethodMeta;
using executorch::runtime::NamedDataMap;
using executorch::runtime::Program;
using executorch::runtime::Result;
using executorch::runtime::Span;

enum class Kind : std::uint32_t {
  kDelegate = 1,  // to the parent: index, payload; back: number of inputs
  kReady = 2,     // to the parent: number of inputs, then a descriptor for each input and each output
  kExecute = 3,   // to the parent: index, inputs as descriptor and data, output descriptors; back: outputs
  kDone = 4,      // to the parent: descriptor and data of each output
  kError = 5,     // to the parent: text
  kRun = 6,       // from the parent: data of each input
  kRead = 7,      // from the parent: arena, offset, bytes of planned memory; back: its content
  kWrite = 8,     // from the parent: arena, offset, content; back: nothing
};

[[noreturn]] void parent_is_gone() {
  std::_Exit(1);
}

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}

  void send(Kind kind, const std::vector<Blob>& blobs) const {
    const std::uint32_t head[2] = {static_cast<std::uint32_t>(kind),
                                   static_cast<std::uint32_t>(blobs.size())};
    write_all(head, sizeof head);
    for (const Blob& blob : blobs) {
      const std::uint64_t size = blob.size();
      write_all(&size, sizeof size);
      write_all(blob.data(), blob.size());
    }
  }

  Kind receive(std::vector<Blob>& blobs) const {
    std::uint32_t head[2];
    read_all(head, sizeof head);
    blobs.resize(head[1]);
    for (Blob& blob : blobs) {
      std::uint64_t size = 0;
      read_all(&size, sizeof size);
      blob.resize(size);
      read_all(blob.data(), blob.size());
    }
    return static_cast<Kind>(head[0]);
  }

 private:
  void write_all(const void* data, std::size_t size) const {
    const auto* at = static_cast<const std::uint8_t*>(data);
    while (size > 0) {
      const ssize_t count = ::write(descriptor_, at, size);
      if (count <= 0) {
        if (count < 0 && errno == EINTR) continue;
        parent_is_gone();
      }
      at += count;
      size -= static_cast<std::size_t>(count);
    }
  }

  void read_all(void* data, std::size_t size) const {
    auto* at = static_cast<std::uint8_t*>(data);
    while (size > 0) {
      const ssize_t count = ::read(descriptor_, at, size);
      if (count <= 0) {
        if (count < 0 && errno == EINTR) continue;
        parent_is_gone();
      }
      at += count;
      size -= static_cast<std::size_t>(count);
    }
  }

  int descriptor_;
};

const Socket* g_socket = nullptr;

void append(Blob& blob, std::uint32_t word) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&word);
  blob.insert(blob.end(), bytes, bytes + sizeof word);
}

Blob number(std::uint32_t value) {
  Blob blob;
  append(blob, value);
  return blob;
}

// ScalarType, rank, sizes, dim_order.
template <typename Described>
Blob descriptor(const Described& tensor) {
  Blob blob;
  append(blob, static_cast<std::uint32_t>(tensor.scalar_type()));
  append(blob, static_cast<std::uint32_t>(tensor.sizes().size()));
  for (const auto size : tensor.sizes()) append(blob, static_cast<std::uint32_t>(size));
  for (const auto axis : tensor.dim_order()) append(blob, static_cast<std::uint32_t>(axis));
  return blob;
}

Blob content(const Tensor& tensor) {
  const auto* data = static_cast<const std::uint8_t*>(tensor.const_data_ptr());
  return Blob(data, data + tensor.nbytes());
}

struct Handle {
  std::uint32_t index;
  std::uint32_t inputs;
};

// Executes nothing itself: each call travels to the parent and back.
class RemoteEthosU final : public BackendInterface {
 public:
  bool is_available() const override { return true; }

  Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer* payload,
                               ArrayRef<CompileSpec>) const override {
    auto* handle = context.get_runtime_allocator()->allocateInstance<Handle>();
    if (handle == nullptr) return Error::MemoryAllocationFailed;
    const auto* data = static_cast<const std::uint8_t*>(payload->data());
    Blob whole;
    const Error found = with_external_blocks(context.get_named_data_map(), data, payload->size(), whole);
    if (found != Error::Ok) return found;
    const std::uint32_t index = count_++;
    g_socket->send(Kind::kDelegate, {number(index), whole});
    std::vector<Blob> reply;
    if (g_socket->receive(reply) != Kind::kDelegate || reply.size() != 1 || reply[0].size() != 4) {
      return Error::DelegateInvalidCompatibility;
    }
    std::uint32_t inputs = 0;
    std::memcpy(&inputs, reply[0].data(), sizeof inputs);
    new (handle) Handle{index, inputs};
    payload->Free();
    return handle;
  }

  Error execute(BackendExecutionContext&, DelegateHandle* opaque, Span<EValue*> arguments) const override {
    const auto* handle = static_cast<const Handle*>(opaque);
    if (arguments.size() < handle->inputs) return Error::InvalidArgument;
    std::vector<Blob> request{number(handle->index)};
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i]->isTensor()) return Error::InvalidArgument;
      const Tensor& tensor = arguments[i]->toTensor();
      request.push_back(descriptor(tensor));
      if (i < handle->inputs) request.push_back(content(tensor));
    }
    g_socket->send(Kind::kExecute, request);
    std::vector<Blob> results;
    if (g_socket->receive(results) != Kind::kExecute || results.size() != arguments.size() - handle->inputs) {
      return Error::DelegateInvalidHandle;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      Tensor& tensor = arguments[handle->inputs + i]->toTensor();
      if (results[i].size() != tensor.nbytes()) return Error::InvalidArgument;
      std::memcpy(tensor.mutable_data_ptr(), results[i].data(), results[i].size());
    }
    return Error::Ok;
  }

 private:
  mutable std::uint32_t count_ = 0;
};

void fail(const std::string& what, Error error) {
  char code[32];
  std::snprintf(code, sizeof code, " (ExecuTorch error 0x%x)", static_cast<unsigned>(error));
  const std::string text = what + code;
  g_socket->send(Kind::kError, {Blob(text.begin(), text.end())});
}

// The sizes of a method's planned buffers, or larger ones in `sizes`.
void grow(std::vector<std::size_t>& sizes, const MethodMeta& meta) {
  for (std::size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    if (i == sizes.size()) sizes.push_back(0);
    sizes[i] = std::max(sizes[i], static_cast<std::size_t>(meta.memory_planned_buffer_size(i).get()));
  }
}

// Inputs are set before every execution: planned inputs share memory with later tensors.
bool set_inputs(Method& method, const MethodMeta& meta, std::vector<Blob>& data) {
  if (data.size() != meta.num_inputs()) {
    fail("wrong number of inputs", Error::InvalidArgument);
    return false;
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto tensor = meta.input_tensor_meta(i).get();
    if (tensor.nbytes() != data[i].size()) {
      fail("input " + std::to_string(i) + " has the wrong size", Error::InvalidArgument);
      return false;
    }
    TensorImpl implementation(tensor.scalar_type(), static_cast<ssize_t>(tensor.sizes().size()),
                              const_cast<TensorImpl::SizesType*>(tensor.sizes().data()), data[i].data(),
                              const_cast<TensorImpl::DimOrderType*>(tensor.dim_order().data()));
    const Error error = method.set_input(EValue(Tensor(&implementation)), i);
    if (error != Error::Ok) {
      fail("input " + std::to_string(i) + " was refused", error);
      return false;
    }
  }
  return true;
}

bool describe(const MethodMeta& meta) {
  std::vector<Blob> blobs{number(static_cast<std::uint32_t>(meta.num_inputs()))};
  for (std::size_t i = 0; i < meta.num_inputs(); ++i) {
    const auto tensor = meta.input_tensor_meta(i);
    if (!tensor.ok()) {
      fail("input " + std::to_string(i) + " is not a tensor", tensor.error());
      return false;
    }
    blobs.push_back(descriptor(tensor.get()));
  }
  for (std::size_t i = 0; i < meta.num_outputs(); ++i) {
    const auto tensor = meta.output_tensor_meta(i);
    if (!tensor.ok()) {
      fail("output " + std::to_string(i) + " is not a tensor", tensor.error());
      return false;
    }
    blobs.push_back(descriptor(tensor.get()));
  }
  g_socket->send(Kind::kReady, blobs);
  return true;
}

bool run_once(Method& method, const MethodMeta& meta, std::vector<Blob>& inputs) {
  if (!set_inputs(method, meta, inputs)) return false;
  const Error error = method.execute();
  if (error != Error::Ok) {
    fail("execution failed", error);
    return false;
  }
  std::vector<Blob> blobs;
  for (std::size_t i = 0; i < method.outputs_size(); ++i) {
    const Tensor& tensor = method.get_output(i).toTensor();
    blobs.push_back(descriptor(tensor));
    blobs.push_back(content(tensor));
  }
  g_socket->send(Kind::kDone, blobs);
  return true;
}

// Reads or writes planned memory: where a method keeps its state.
bool access(Kind kind, const std::vector<Blob>& request, PlannedMemory& planned) {
  std::uint32_t words[3] = {};  // arena, offset, bytes
  const bool reads = kind == Kind::kRead;
  std::uint8_t* data = nullptr;
  if (request.size() == 2 && request[0].size() == sizeof words) {
    std::memcpy(words, request[0].data(), sizeof words);
    data = planned.find(words[0], words[1], words[2]);
  }
  if (data == nullptr || (!reads && request[1].size() != words[2])) {
    fail("a part of the state lies outside of the planned memory", Error::InvalidArgument);
    return false;
  }
  if (!reads) std::memcpy(data, request[1].data(), words[2]);
  g_socket->send(kind, reads ? std::vector<Blob>{Blob(data, data + words[2])} : std::vector<Blob>{});
  return true;
}

// A method with its memory.
struct Loaded {
  explicit Loaded(const MethodMeta& described) : meta(described) {}

  // `shared` is the memory of all methods, nullptr: this one has memory of its own.
  Error load(Program& program, const char* name, PlannedMemory* shared, const NamedDataMap* data) {
    std::vector<std::size_t> sizes;
    grow(sizes, meta);
    if (shared == nullptr) own.allocate(sizes);
    arenas = std::make_unique<HierarchicalAllocator>((shared == nullptr ? own : *shared).spans());
    memory = std::make_unique<MemoryManager>(&method_memory, arenas.get(), &temporary_memory);
    Result<Method> loaded = program.load_method(name, memory.get(), nullptr, data);
    if (!loaded.ok()) return loaded.error();
    method = std::make_unique<Method>(std::move(*loaded));
    return Error::Ok;
  }

  MethodMeta meta;
  PlannedMemory own;
  MallocMemoryAllocator method_memory;
  MallocMemoryAllocator temporary_memory;
  std::unique_ptr<HierarchicalAllocator> arenas;
  std::unique_ptr<MemoryManager> memory;
  std::unique_ptr<Method> method;
};

// `names` are separated by commas; with `shares`, methods have one memory.
int serve(const char* path, const char* names, bool shares, const std::vector<std::string>& data_paths) {
  const std::vector<char> file = content_of(path);
  DataFiles data;
  if (const Error error = data.load(data_paths); error != Error::Ok) {
    return fail("a data file was refused", error), 1;
  }
  BufferDataLoader loader(file.data(), file.size());
  Result<Program> program = Program::load(&loader, Program::Verification::InternalConsistency);
  if (!program.ok()) return fail("the file is not a program", program.error()), 1;
  std::vector<std::string> wanted;
  std::stringstream list(names);
  for (std::string name; std::getline(list, name, ',');) wanted.push_back(name);
  std::vector<std::unique_ptr<Loaded>> methods;
  std::vector<std::size_t> sizes;
  for (const std::string& name : wanted) {
    const Result<MethodMeta> meta = program->method_meta(name.c_str());
    if (!meta.ok()) return fail("the program has no method " + name, meta.error()), 1;
    methods.push_back(std::make_unique<Loaded>(*meta));
    grow(sizes, *meta);
  }
  PlannedMemory shared;
  if (shares) shared.allocate(sizes);
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const Error error = methods[i]->load(*program, wanted[i].c_str(), shares ? &shared : nullptr, data.map());
    if (error != Error::Ok) return fail("the method could not be loaded", error), 1;
  }
  for (const auto& row : methods) {
    if (!describe(row->meta)) return 1;
  }
  std::vector<Blob> request;
  while (true) {
    const Kind kind = g_socket->receive(request);
    if (kind == Kind::kRead || kind == Kind::kWrite) {
      if (!access(kind, request, shares ? shared : methods[0]->own)) return 1;
      continue;
    }
    if (kind != Kind::kRun || request.empty() || request[0].size() != sizeof(std::uint32_t)) {
      return fail("unexpected message", Error::InvalidState), 1;
    }
    std::uint32_t index;
    std::memcpy(&index, request[0].data(), sizeof index);
    if (index >= methods.size()) return fail("no such method", Error::InvalidArgument), 1;
    request.erase(request.begin());
    if (!run_once(*methods[index]->method, methods[index]->meta, request)) return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: %s MODEL.pte METHOD,... own|shared FD [DATA.ptd...]\n", argv[0]);
    return 2;
  }
  const Socket socket(std::atoi(argv[4]));
  g_socket = &socket;
  executorch::runtime::runtime_init();
  static RemoteEthosU backend;
  const Error error = executorch::runtime::register_backend(Backend{"EthosUBackend", &backend});
  if (error != Error::Ok) return fail("EthosUBackend could not be registered", error), 1;
  const std::vector<std::string> data_paths(argv + 5, argv + argc);
  return serve(argv[1], argv[2], std::strcmp(argv[3], "shared") == 0, data_paths);
}
