// Values between the CPU and the delegates, laid where the delegates take and leave them: nothing is copied.
#pragma once

#include "runtime/state.hpp"

namespace ethosu_sdk::runtime {

// A delegate's place for an argument holds from one call of a delegate to the next. So a value may lie there
// if it is written, or read, by nothing but kernels between two calls; and a copy to another layout is no
// work for a kernel that writes, or reads, any layout itself.
class Borders {
 public:
  explicit Borders(MethodState& state) : state_(state) {}

  // After all of the method is loaded. Programs with jumps or several chains stay as they are.
  void place();

 private:
  // What the instructions do with a value: how many, and the last ones.
  struct Uses {
    std::uint32_t delegates = 0, writers = 0, readers = 0;  // readers and writers are kernels
    std::uint32_t dequantizers = 0;                         // among the readers
    std::uint32_t writer = 0xFFFFFFFF, last_reader = 0;     // none at first
    bool are_plain = true;                                  // the readers do nothing to the value
  };

  const schema::Instruction& instruction(std::uint32_t index) const { return *instructions_->Get(index); }
  std::uint32_t count() const { return length(instructions_); }
  bool is_straight();
  const char* kernel_name(std::uint32_t index) const;
  Uses uses_of(std::int32_t value) const;
  bool is_listed(std::int32_t value) const;
  Tensor* own_tensor(std::int32_t value, bool is_input) const;
  std::uint32_t place_inputs(const schema::DelegateCall& call, std::uint32_t begin, std::uint32_t at);
  bool is_written(const Uses& uses, std::uint32_t begin) const;
  std::uint32_t skip_copy(const Tensor& placed, std::uint32_t writer, std::uint32_t begin);
  void place_outputs(const schema::DelegateCall& call, std::uint32_t end);
  bool is_only_read(const Uses& uses, std::uint32_t end) const;
  void skip_copies(std::int32_t value, const Tensor& placed, std::uint32_t end);
  static void lay(Tensor& tensor, const Tensor& placed);

  MethodState& state_;
  const flatbuffers::Vector<flatbuffers::Offset<schema::Instruction>>* instructions_ = nullptr;
};

}  // namespace ethosu_sdk::runtime
