// aten::pow of two tensors, or of a tensor and a number on either side; aten::atan2.
#include <cmath>
#include <cstdint>

#include "kernels/kernels.hpp"
#include "kernels/support/operations.hpp"
#include "kernels/support/wrapping.hpp"

namespace ethosu_sdk::kernels {
namespace {

// Exact, and wrapping where it does not fit. A negative exponent gives the reciprocal cut off; 0 has none:
// the least integer, to which x86-64 converts the infinity.
std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) {
      return INT64_MIN;
    }
    const bool is_unit = base == 1 || base == -1;
    return is_unit ? (exponent % 2 == 0 ? 1 : base) : 0;
  }
  std::int64_t square = base;
  std::int64_t result = 1;
  for (std::int64_t left = exponent; left != 0; left >>= 1) {
    result = (left & 1) != 0 ? wrapping_product(result, square) : result;
    square = wrapping_product(square, square);
  }
  return result;
}

}  // namespace

Status pow_out(KernelContext& context, Span<Value* const> values) {
  return promoted_binary(context, values, {integer_power, std::pow, nullptr});
}

Status atan2_out(KernelContext& context, Span<Value* const> values) {
  Arguments arguments(context, values, 3);
  const Tensor& left = arguments.tensor(0);
  const Tensor& right = arguments.tensor(1);
  const ScalarType common = real_type(promote(left.dtype, right.dtype));
  return compute_binary(arguments, left, right, arguments.output(2), common, common,
                        {nullptr, std::atan2, nullptr});
}

}  // namespace ethosu_sdk::kernels
