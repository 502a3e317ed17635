// ExecuTorch's backend for Ethos-U delegates, in a process whose parent executes them. See host_runtime.py
// for the messages; the numbers here and there must agree.
#pragma once

#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/executor/method.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "named_data.hpp"

namespace {

using executorch::aten::Tensor;
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
  std::uint32_t scratch_bytes;
  std::uint8_t rest[84];  // ExecuTorch's own backend keeps ten pointers and sizes: not more than this
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
    if (g_socket->receive(reply) != Kind::kDelegate || reply.size() != 1 ||
        reply[0].size() != 2 * sizeof(std::uint32_t)) {
      return Error::DelegateInvalidCompatibility;
    }
    std::uint32_t words[2];  // inputs, bytes of scratch
    std::memcpy(words, reply[0].data(), sizeof words);
    new (handle) Handle{index, words[0], words[1], {}};
    payload->Free();
    return handle;
  }

  Error execute(BackendExecutionContext& context, DelegateHandle* opaque,
                Span<EValue*> arguments) const override {
    const auto* handle = static_cast<const Handle*>(opaque);
    if (arguments.size() < handle->inputs) return Error::InvalidArgument;
    // As ExecuTorch's own backend does; the parent has scratch of its own.
    if (handle->scratch_bytes > 0 && context.allocate(handle->scratch_bytes, 16) == nullptr) {
      return Error::MemoryAllocationFailed;
    }
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

}  // namespace
