// Random numbers, and the arguments of a kernel's call made of them.
#pragma once

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "kernels/support/kernel_api.hpp"
#include "random.hpp"

using namespace ethosu_sdk;

constexpr std::size_t longest = 16384, guard = 64;

inline Random random_numbers;

inline std::uint32_t below(std::uint32_t limit) {
  return random_numbers.below(limit);
}
inline std::int32_t between(std::int32_t low, std::int32_t high) {
  return random_numbers.between(low, high);
}
inline bool rarely() {
  return below(16) == 0;
}

// The arguments of one call, in the schema's order, and the memory of its tensors.
class Call {
 public:
  Call() { std::memset(result_, 0x55, written_); }

  Tensor& tensor(ScalarType dtype, std::initializer_list<std::int32_t> sizes, bool pixels = false) {
    static constexpr std::uint8_t plain[] = {0, 1, 2, 3}, last[] = {0, 2, 3, 1};
    Tensor& made = tensors_[tensor_count_];
    std::copy(sizes.begin(), sizes.end(), sizes_[tensor_count_]);
    made.sizes = sizes_[tensor_count_];
    made.data = memory_[tensor_count_];
    made.dim_order = pixels ? last : plain;
    made.rank = static_cast<std::uint8_t>(sizes.size());
    made.dtype = dtype;
    made.capacity_bytes = longest;
    Value& value = next(ValueKind::tensor);
    value.tensor = &made;
    ++tensor_count_;
    return made;
  }
  Tensor& bytes(std::initializer_list<std::int32_t> sizes, bool pixels = false) {
    Tensor& made = tensor(ScalarType::int8, sizes, pixels);
    for (std::size_t i = 0; i < made.byte_count(); i += 4) {
      const std::uint32_t bits = random_numbers.next();
      std::memcpy(made.as<std::uint8_t>() + i, &bits, 4);
    }
    return made;
  }
  // `count` numbers of `make()`.
  template <typename Make>
  void numbers(std::int32_t count, Make&& make) {
    Tensor& made = tensor(ScalarType::int32, {count});
    for (std::int32_t i = 0; i < count; ++i) {
      made.as<std::int32_t>()[i] = make();
    }
  }
  void none() { next(ValueKind::none); }
  void integer(std::int64_t number) { next(ValueKind::integer).integer = number; }
  void real(double number) { next(ValueKind::real).real = number; }
  void boolean(bool is) { next(ValueKind::boolean).boolean = is; }
  void integers(std::initializer_list<std::int64_t> numbers) {
    Value& list = next(ValueKind::integer_list);
    list.items = items_ + item_count_;
    list.item_count = static_cast<std::uint32_t>(numbers.size());
    for (const std::int64_t number : numbers) {
      item_values_[item_count_].kind = ValueKind::integer;
      item_values_[item_count_].integer = number;
      items_[item_count_] = &item_values_[item_count_];
      ++item_count_;
    }
  }
  // Two lists' items, each below its limit.
  void pair(std::int32_t low, std::int32_t high) { integers({between(low, high), between(low, high)}); }
  // CMSIS-NN's form of a factor: 31 bits of a multiplier, and a shift, rarely any.
  std::int32_t multiplier() { return rarely() ? between(-2147483647 - 1, -1) : between(1 << 30, 2147483647); }
  std::int32_t shift() { return rarely() ? between(-31, 31) : between(-14, 0); }
  void scale() {
    integer(multiplier());
    integer(shift());
  }
  void range(std::int32_t& least, std::int32_t& most) {
    least = rarely() ? between(-128, 0) : -128;
    most = rarely() ? between(0, 127) : 127;
  }

  // The output last; it gets its sizes from the kernel. Adds the call's status and results to the digest.
  bool run(KernelFn kernel, ScalarType dtype, std::size_t rank, bool pixels, std::uint32_t& digest) {
    Tensor& output = rank == 4   ? tensor(dtype, {1, 1, 1, 1}, pixels)
                     : rank == 3 ? tensor(dtype, {1, 1, 1})
                                 : tensor(dtype, {1, 1});
    output.data = result_;
    output.capacity_bytes = sizeof result_ - guard;
    output.resizable = true;
    ErrorText text;
    KernelContext context(text);
    const Status status = kernel(context, {pointers_, count_});
    digest = (digest ^ static_cast<std::uint32_t>(status)) * 16777619U;  // FNV-1a
    for (std::size_t i = 0; i < std::min(output.byte_count() + guard, longest); ++i) {
      digest = (digest ^ result_[i]) * 16777619U;
    }
    written_ = std::min(output.byte_count() + guard, longest);
    return status == Status::ok;
  }

 private:
  Value& next(ValueKind kind) {
    Value& value = values_[count_];
    value = Value();
    value.kind = kind;
    pointers_[count_++] = &value;
    return value;
  }

  static inline Value values_[20], item_values_[16];
  static inline Value* pointers_[20];
  static inline Value* items_[16];
  static inline Tensor tensors_[8];
  static inline std::int32_t sizes_[8][4];
  alignas(8) static inline std::uint8_t memory_[8][longest];
  alignas(8) static inline std::uint8_t result_[longest];
  static inline std::size_t written_ = longest;  // of the result, by the call before
  std::size_t count_ = 0, item_count_ = 0, tensor_count_ = 0;
};
