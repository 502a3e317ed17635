#include "app/feeding.hpp"

#include <cstring>
#include <limits>

#include "app/choosing.hpp"

namespace ethosu_sdk::app {
namespace {

constexpr char stage[] = "feeds";

template <typename Number>
std::int64_t load(const std::uint8_t* place) {
  Number number;
  std::memcpy(&number, place, sizeof number);
  return static_cast<std::int64_t>(number);
}

template <typename Number>
bool store(std::uint8_t* place, std::int64_t value) {
  const auto number = static_cast<Number>(value);
  std::memcpy(place, &number, sizeof number);
  return static_cast<std::int64_t>(number) == value;
}

// How whole numbers are kept in a tensor; both nullptr for a type that holds none.
struct Keeping {
  std::int64_t (*load)(const std::uint8_t* place);
  bool (*store)(std::uint8_t* place, std::int64_t value);
};

Keeping keeping_of(ScalarType type) {
  switch (type) {
    case ScalarType::uint8:
      return {load<std::uint8_t>, store<std::uint8_t>};
    case ScalarType::int8:
      return {load<std::int8_t>, store<std::int8_t>};
    case ScalarType::int16:
      return {load<std::int16_t>, store<std::int16_t>};
    case ScalarType::int32:
      return {load<std::int32_t>, store<std::int32_t>};
    case ScalarType::int64:
      return {load<std::int64_t>, store<std::int64_t>};
    case ScalarType::float32:
      return {load<float>, store<float>};
    default:
      return {nullptr, nullptr};
  }
}

bool same_layout(const Tensor& left, const Tensor& right) {
  return left.dtype == right.dtype && left.rank == right.rank &&
         std::memcmp(left.sizes, right.sizes, left.rank * sizeof *left.sizes) == 0 &&
         std::memcmp(left.dim_order, right.dim_order, left.rank) == 0;
}

}  // namespace

bool Feeding::prepare_next(const runtime::Method& method, std::uint32_t set, std::uint32_t inference,
                           Failure& failure) {
  source_ = target_ = &method;
  set_ = set;
  inference_ = inference;
  stops_ = false;
  for (std::uint32_t i = 0; i < sequence_.feeds(); ++i) {
    const Feed feed = sequence_.feed(i);
    if (!feed.takes && set + 1 >= feed.first && set + 1 <= feed.end && !fill(feed, failure)) {
      return false;
    }
  }
  return true;
}

bool Feeding::take(const runtime::Method& source, const runtime::Method& target, std::uint32_t set,
                   std::uint32_t inference, Failure& failure) {
  source_ = &source;
  target_ = &target;
  set_ = set - 1;
  inference_ = inference;
  for (std::uint32_t i = 0; i < sequence_.feeds(); ++i) {
    const Feed feed = sequence_.feed(i);
    if (feed.takes && feed.first == set && !fill(feed, failure)) {
      return false;
    }
  }
  stops_ = false;
  return true;
}

bool Feeding::fill(const Feed& feed, Failure& failure) {
  const Tensor* const input = target_->input(feed.input);
  if (input == nullptr || input->byte_count() != feed.room.size()) {
    return failure.say(stage, "wrong_size", "input ", feed.input, " is not a tensor of ", feed.room.size(),
                       " bytes");
  }
  switch (feed.form) {
    case protocol::feed_copy:
      return copy(feed, *input, failure);
    case protocol::feed_step:
      return count(feed, *input, failure);
    default:
      return choose(feed, *input, failure);
  }
}

bool Feeding::copy(const Feed& feed, const Tensor& input, Failure& failure) {
  const Tensor* const output = source_->output(feed.output);
  if (output == nullptr || output->data == nullptr || !same_layout(*output, input)) {
    return failure.say(stage, "wrong_type", "output ", feed.output, " has not the layout of input ",
                       feed.input);
  }
  std::memcpy(feed.room.data(), output->data, feed.room.size());
  return true;
}

bool Feeding::count(const Feed& feed, const Tensor& input, Failure& failure) {
  const Keeping keeping = keeping_of(input.dtype);
  const std::size_t elements = input.element_count(), width = element_bytes(input.dtype);
  for (std::size_t i = 0; i < elements; ++i) {
    std::uint8_t* const place = feed.room.data() + i * width;
    if (keeping.load == nullptr ||
        !keeping.store(place, keeping.load(place) + static_cast<std::int64_t>(elements))) {
      return failure.say(stage, "wrong_type", "input ", feed.input, " does not hold the number of the step");
    }
  }
  return true;
}

bool Feeding::choose(const Feed& feed, const Tensor& input, Failure& failure) {
  const Tensor* const output = source_->output(feed.output);
  const Keeping keeping = keeping_of(input.dtype);
  const std::size_t chosen = input.element_count();
  const std::size_t length =
      output == nullptr || output->rank == 0 ? 0 : static_cast<std::size_t>(output->sizes[output->rank - 1]);
  const std::size_t rows = length == 0 ? 0 : output->element_count() / length;
  const bool last = feed.row == protocol::feed_last_rows;
  if (output == nullptr || output->data == nullptr || !output->is_contiguous() ||
      !Row::can_read(output->dtype) || keeping.store == nullptr || chosen > protocol::feed_max_rows ||
      chosen > rows || (!last && feed.row > rows - chosen)) {
    return failure.say(stage, "wrong_type", "output ", feed.output, " has no rows to choose ", chosen,
                       " indices from for input ", feed.input);
  }
  const std::size_t first = last ? rows - chosen : feed.row;
  std::int32_t indices[protocol::feed_max_rows];
  for (std::size_t i = 0; i < chosen; ++i) {
    const Row row(*output, (first + i) * length, length);
    const std::uint64_t draw = (std::uint64_t{sequence_.first_step()} + set_) * chosen + i;
    std::uint32_t index = 0;
    if (!(feed.form == protocol::feed_argmax ? choose_greatest(row, index)
                                             : choose_drawn(row, feed, draw, index))) {
      return failure.say(stage, "not_a_number", "output ", feed.output, " of inference ", inference_,
                         " has a value that is no finite number");
    }
    indices[i] = static_cast<std::int32_t>(index);
    stops_ = stops_ || feed.stops_at(index);
    if (!keeping.store(feed.room.data() + i * element_bytes(input.dtype), index)) {
      return failure.say(stage, "wrong_type", "input ", feed.input, " does not hold ", index);
    }
  }
  records_.write(protocol::choice, inference_, feed.input, Span<const std::int32_t>{indices, chosen});
  return true;
}

}  // namespace ethosu_sdk::app
