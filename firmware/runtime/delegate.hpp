// What runs the delegated parts of a method.
#pragma once

#include <cstdint>

#include "kernels/support/kernel_api.hpp"

namespace ethosu_sdk::runtime {

// What a payload may refer to by a key.
class NamedBlobs {
 public:
  // Whether there is data under `key`; it outlives the method.
  virtual bool find(const char* key, Span<const std::uint8_t>& bytes) const = 0;

 protected:
  ~NamedBlobs() = default;
};

class Delegate {
 public:
  // The backend that a program must have been lowered for.
  virtual const char* backend_id() const { return "EthosUBackend"; }

  // Called once for each delegate of the method, with indices 0, 1, …; `payload` outlives the method, `blobs`
  // the call alone.
  virtual Status init(std::uint32_t index, Span<const std::uint8_t> payload, const NamedBlobs& blobs) = 0;

  // `index` is a delegate that init() accepted, `instruction` the DelegateCall's index in its chain.
  // Arguments are the delegate's inputs, then its outputs; each Tensor among them has memory.
  virtual Status execute(std::uint32_t index, std::uint32_t instruction, Span<Value* const> arguments) = 0;

  // Where the delegate takes its argument `position` from, or leaves it if it is an output, so that a call
  // copies nothing: `bytes` of memory that calls of other delegates change. nullptr: only what the call
  // names.
  virtual void* place(std::uint32_t index, std::uint32_t position, std::size_t bytes) {
    static_cast<void>(index), static_cast<void>(position), static_cast<void>(bytes);
    return nullptr;
  }
  // How many of the arguments of `index` are inputs: the first ones.
  virtual std::uint32_t inputs(std::uint32_t index) const {
    static_cast<void>(index);
    return 0;
  }

  // Why the last call failed; nullptr: no words.
  virtual const char* error_text() const { return nullptr; }

 protected:
  ~Delegate() = default;
};

}  // namespace ethosu_sdk::runtime
