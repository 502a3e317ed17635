#include "app/sequence.hpp"

#include <cstring>

namespace ethosu_sdk::app {
namespace {

constexpr std::uint32_t word_bytes = 4;

}  // namespace

bool Feed::stops_at(std::uint32_t choice) const {
  for (std::uint32_t i = 0; i < stop_count; ++i) {
    if (stops[i] == choice) {
      return true;
    }
  }
  return false;
}

bool Sequence::open(Span<std::uint8_t> image, std::uint32_t at, std::uint32_t inputs) {
  *this = {};
  image_ = image;
  at_ = at;
  if (at == 0) {
    return true;
  }
  if (!holds(at, protocol::sequence_header_bytes)) {
    return false;
  }
  const std::uint32_t feeds = word(at), states = word(at + word_bytes), calls = word(at + 3 * word_bytes);
  if (feeds > protocol::sequence_max_feeds || states > protocol::sequence_max_states ||
      calls > protocol::sequence_max_calls) {
    return false;
  }
  calls_ = calls;
  feeds_ = feeds;
  states_ = states;
  first_step_ = word(at + 2 * word_bytes);
  if (!holds(at, static_cast<std::uint32_t>(call_at(calls) - at))) {
    return false;
  }
  for (std::uint32_t i = 0; i < feeds; ++i) {
    if (!check_feed(feed_at(i), inputs)) {
      return false;
    }
  }
  for (std::uint32_t i = 0; i < states; ++i) {
    if (!check_state(state_at(i))) {
      return false;
    }
  }
  return true;
}

bool Sequence::check_feed(std::size_t row, std::uint32_t inputs) const {
  const std::uint32_t form = word(row + protocol::feed_form_at);
  return form >= protocol::feed_copy && form <= protocol::feed_step &&
         word(row + protocol::feed_input_at) < inputs &&
         holds(word(row + protocol::feed_room_at), word(row + protocol::feed_room_bytes_at)) &&
         word(row + protocol::feed_top_k_at) <= protocol::feed_max_top_k &&
         word(row + protocol::feed_stop_count_at) <= protocol::feed_max_stops;
}

bool Sequence::check_state(std::size_t row) const {
  const std::uint32_t initial = word(row + 3 * word_bytes);
  return initial == 0 || holds(initial, word(row + 2 * word_bytes));
}

Feed Sequence::feed(std::uint32_t index) const {
  const std::size_t row = feed_at(index);
  Feed feed{};
  feed.form = word(row + protocol::feed_form_at);
  feed.input = word(row + protocol::feed_input_at);
  feed.output = word(row + protocol::feed_output_at);
  feed.row = word(row + protocol::feed_row_at);
  feed.room = {image_.data() + word(row + protocol::feed_room_at), word(row + protocol::feed_room_bytes_at)};
  feed.first = word(row + protocol::feed_first_at);
  feed.end = word(row + protocol::feed_end_at);
  feed.takes = word(row + protocol::feed_takes_at) != 0;
  std::memcpy(&feed.factor, image_.data() + row + protocol::feed_factor_at, sizeof feed.factor);
  feed.top_k = word(row + protocol::feed_top_k_at);
  feed.seed = word(row + protocol::feed_seed_at) |
              std::uint64_t{word(row + protocol::feed_seed_at + word_bytes)} << 32;
  feed.stop_count = word(row + protocol::feed_stop_count_at);
  for (std::uint32_t i = 0; i < feed.stop_count; ++i) {
    feed.stops[i] = word(row + protocol::feed_stops_at + word_bytes * i);
  }
  return feed;
}

StateTensor Sequence::state(std::uint32_t index) const {
  const std::size_t row = state_at(index);
  const std::uint32_t bytes = word(row + 2 * word_bytes), initial = word(row + 3 * word_bytes);
  StateTensor state{word(row), word(row + word_bytes), bytes, {}};
  if (initial != 0) {
    state.initial = {image_.data() + initial, bytes};
  }
  return state;
}

bool Sequence::holds(std::uint32_t offset, std::uint32_t size) const {
  return offset % protocol::input_image_alignment == 0 && offset >= protocol::input_image_header_bytes &&
         offset <= image_.size() && size <= image_.size() - offset;
}

std::size_t Sequence::feed_at(std::uint32_t index) const {
  return at_ + protocol::sequence_header_bytes + std::size_t{protocol::sequence_feed_bytes} * index;
}

std::size_t Sequence::state_at(std::uint32_t index) const {
  return feed_at(feeds_) + std::size_t{protocol::sequence_state_bytes} * index;
}

std::size_t Sequence::call_at(std::uint32_t index) const {
  return state_at(states_) + std::size_t{protocol::sequence_call_bytes} * index;
}

Call Sequence::call(std::uint32_t index) const {
  const std::size_t row = call_at(index);
  return {word(row), word(row + word_bytes)};
}

std::uint32_t Sequence::word(std::size_t offset) const {
  std::uint32_t value;
  std::memcpy(&value, image_.data() + offset, sizeof value);
  return value;
}

}  // namespace ethosu_sdk::app
