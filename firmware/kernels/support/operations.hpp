// Element by element with one operation for each type to compute with, called by pointer: operators share the
// loops, and each adds little more than its arithmetic to a firmware.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/elementwise.hpp"

namespace ethosu_sdk::kernels {

template <typename Compute>
using Unary = Compute (*)(Compute value);
template <typename Compute>
using Binary = Compute (*)(Compute left, Compute right);

// What computes integers and bool, float32 and float64; nullptr: the operator does not compute them.
using UnaryOperations = ForComputeTypes<Unary>;
using BinaryOperations = ForComputeTypes<Binary>;

// A Tensor argument, or a Scalar argument as a tensor without dimensions: operators have overloads for both.
class Operand {
 public:
  Operand(Arguments& arguments, std::size_t index);
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  const Tensor& tensor() const { return *tensor_; }
  bool is_number() const { return is_number_; }
  const Scalar& number() const { return number_; }

 private:
  const Tensor* tensor_ = nullptr;
  bool is_number_ = false;
  Scalar number_;
  Tensor own_;  // of a number
};

ScalarType promote(const Operand& left, const Operand& right);

// float32 for integers and bool: what operators with real results compute in.
ScalarType real_type(ScalarType dtype);

// Computes in `common`; the output gets the input's shape. `result` is the dtype of the result, which the
// output's must be able to hold.
Status compute_unary(Arguments& arguments, const Tensor& input, Tensor& output, ScalarType common,
                     ScalarType result, const UnaryOperations& operations);
// The same of two tensors, broadcast against each other.
Status compute_binary(Arguments& arguments, const Tensor& left, const Tensor& right, Tensor& output,
                      ScalarType common, ScalarType result, const BinaryOperations& operations);

// One input, one output of the same dtype.
Status same_type_unary(KernelContext& context, Span<Value* const> values, const UnaryOperations& operations);
// self, other, out: computed in the promoted type, which is the result's too.
Status promoted_binary(KernelContext& context, Span<Value* const> values, const BinaryOperations& operations);

}  // namespace ethosu_sdk::kernels
