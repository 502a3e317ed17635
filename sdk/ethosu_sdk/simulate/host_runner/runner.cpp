// Runs one `.pte` on ExecuTorch's own runtime and lets the process at the other end of a socket execute
// the Ethos-U delegates. See host_runtime.py for the messages; the numbers here and there must agree.
//
// Usage: runner MODEL.pte METHOD,... own|shared FD [DATA.ptd...]

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "named_data.hpp"
#include "planned_memory.hpp"
#include "remote_ethosu.hpp"

namespace {

using executorch::aten::TensorImpl;
using executorch::extension::BufferDataLoader;
using executorch::extension::MallocMemoryAllocator;
using executorch::runtime::HierarchicalAllocator;
using executorch::runtime::MemoryManager;
using executorch::runtime::Method;
using executorch::runtime::MethodMeta;
using executorch::runtime::NamedDataMap;
using executorch::runtime::Program;

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
