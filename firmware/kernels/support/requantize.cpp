#include "kernels/support/requantize.hpp"

namespace ethosu_sdk::kernels {

Requantization checked_requantization(Arguments& arguments, std::int64_t multiplier, std::int64_t shift) {
  constexpr std::int64_t longest_shift = 31;
  if (!fits<std::int32_t>(multiplier) || shift < -longest_shift || shift > longest_shift) {
    arguments.fail(Status::invalid_argument, "a multiplier of ", multiplier, " with a shift of ", shift);
    return {};
  }
  return {static_cast<std::int32_t>(multiplier), static_cast<std::int32_t>(shift)};
}

Requantization read_requantization(Arguments& arguments, std::size_t index) {
  return checked_requantization(arguments, arguments.integer(index), arguments.integer(index + 1));
}

std::int32_t read_int32(Arguments& arguments, std::size_t index) {
  const std::int64_t number = arguments.integer(index);
  if (!fits<std::int32_t>(number)) {
    arguments.fail(Status::invalid_argument, "argument ", index, " is ", number);
    return 0;
  }
  return static_cast<std::int32_t>(number);
}

const std::int32_t* read_int32s(Arguments& arguments, const Tensor& tensor, std::size_t count) {
  arguments.expect_dtype(tensor, ScalarType::int32, "a bias, multiplier or shift");
  if (arguments.ok() && tensor.element_count() != count) {
    arguments.fail(Status::shape_mismatch, tensor.element_count(), " numbers for ", count, " channels");
  }
  return tensor.as<const std::int32_t>();
}

OutputRange read_output_range(Arguments& arguments, std::size_t offset, std::size_t minimum,
                              std::size_t maximum) {
  const OutputRange range = {read_int32(arguments, offset), read_int32(arguments, minimum),
                             read_int32(arguments, maximum)};
  if (range.minimum > range.maximum || !fits<std::int8_t>(range.minimum) ||
      !fits<std::int8_t>(range.maximum)) {
    arguments.fail(Status::invalid_argument, "a result from ", range.minimum, " to ", range.maximum);
  }
  return range;
}

}  // namespace ethosu_sdk::kernels
