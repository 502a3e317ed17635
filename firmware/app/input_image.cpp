#include "app/input_image.hpp"

#include <cstring>

#include "app/crc32.hpp"

namespace ethosu_sdk::app {
namespace {

constexpr std::size_t covered_at = protocol::input_image_crc_covers_from;
constexpr std::size_t reference_bytes = protocol::input_image_reference_bytes;
constexpr std::size_t piece_bytes = protocol::input_image_piece_bytes;
constexpr std::uint32_t word_bytes = 4;          // a command has one or two words
constexpr std::uint32_t event_limit = 1U << 10;  // PMEVTYPER.EV_TYPE has ten bits

constexpr const char* error_names[] = {
    "none",         "no_image",     "wrong_version", "wrong_size",      "wrong_crc",
    "wrong_inputs", "wrong_counts", "wrong_events",  "wrong_reference", "wrong_pieces"};

constexpr std::size_t group_at(std::uint32_t group) {
  return protocol::input_image_event_groups_at + std::size_t{protocol::input_image_event_group_bytes} * group;
}

}  // namespace

const char* image_error_name(ImageError error) {
  return error_names[static_cast<std::size_t>(error)];
}

ImageError InputImage::open(const std::uint8_t* data, std::size_t capacity, std::uint32_t method_inputs) {
  data_ = data;
  if (capacity < protocol::input_image_header_bytes ||
      word(protocol::input_image_magic_at) != protocol::input_image_magic) {
    return ImageError::no_image;
  }
  if (word(protocol::input_image_version_at) != protocol::input_image_version) {
    return ImageError::wrong_version;
  }
  bytes_ = word(protocol::input_image_bytes_at);
  if (bytes_ < protocol::input_image_header_bytes || bytes_ > capacity) {
    return ImageError::wrong_size;
  }
  if (word(protocol::input_image_crc_at) != crc32(data + covered_at, bytes_ - covered_at)) {
    return ImageError::wrong_crc;
  }
  const ImageError error = read_header(method_inputs);
  if (error != ImageError::none) {
    return error;
  }
  const ImageError reference_error = check_references();
  return reference_error == ImageError::none ? check_pieces() : reference_error;
}

ImageError InputImage::read_header(std::uint32_t method_inputs) {
  sets_ = word(protocol::input_image_sets_at);
  inputs_ = word(protocol::input_image_inputs_at);
  repeats_ = word(protocol::input_image_repeats_at);
  groups_ = word(protocol::input_image_event_group_count_at);
  pieces_ = word(protocol::input_image_piece_count_at);
  if (inputs_ != method_inputs) {
    return ImageError::wrong_inputs;
  }
  if (sets_ == 0 || repeats_ == 0 || std::uint64_t{sets_} * repeats_ > UINT32_MAX) {
    return ImageError::wrong_counts;
  }
  return check_events();
}

ImageError InputImage::check_events() const {
  if (groups_ > protocol::input_image_max_event_groups) {
    return ImageError::wrong_events;
  }
  for (std::uint32_t group = 0; group < groups_; ++group) {
    if (event_count(group) == 0 || event_count(group) > protocol::input_image_max_events) {
      return ImageError::wrong_events;
    }
    for (std::uint32_t i = 0; i < event_count(group); ++i) {
      if (word(group_at(group) + 4 + 4 * i) >= event_limit) {
        return ImageError::wrong_events;
      }
    }
  }
  return ImageError::none;
}

ImageError InputImage::check_references() const {
  const std::uint64_t references = std::uint64_t{sets_} * inputs_;
  const std::uint64_t room = bytes_ - protocol::input_image_header_bytes;
  if (references > room / reference_bytes) {
    return ImageError::wrong_size;
  }
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(references); ++i) {
    const std::size_t entry = protocol::input_image_header_bytes + reference_bytes * i;
    const std::uint32_t offset = word(entry);
    const std::uint32_t size = word(entry + 4);
    if (!holds(offset, size)) {
      return ImageError::wrong_reference;
    }
  }
  return ImageError::none;
}

ImageError InputImage::check_pieces() const {
  const std::uint32_t table = word(protocol::input_image_pieces_at);
  if (pieces_ == 0) {
    return ImageError::none;
  }
  if (!holds(table, 0) || pieces_ > (bytes_ - table) / piece_bytes) {
    return ImageError::wrong_pieces;
  }
  for (std::uint32_t i = 0; i < pieces_; ++i) {
    const std::size_t entry = table + piece_bytes * i;
    const std::uint32_t size = word(entry + 8);
    if (size % word_bytes != 0 || !holds(word(entry + 4), size)) {
      return ImageError::wrong_pieces;
    }
  }
  return ImageError::none;
}

// Whether the image has `size` bytes at `offset`, an aligned one.
bool InputImage::holds(std::uint32_t offset, std::uint32_t size) const {
  return offset % protocol::input_image_alignment == 0 && offset <= bytes_ && size <= bytes_ - offset;
}

Bytes InputImage::nonce() const {
  if (bytes_ == 0) {
    return {nullptr, 0};
  }
  return {data_ + protocol::input_image_nonce_at, protocol::input_image_nonce_bytes};
}

bool InputImage::counts_cycles() const {
  return (word(protocol::input_image_options_at) & protocol::input_image_counts_cycles) != 0;
}

bool InputImage::resets_state() const {
  return (word(protocol::input_image_options_at) & protocol::input_image_resets_state) != 0;
}

bool InputImage::sends_last() const {
  return (word(protocol::input_image_options_at) & protocol::input_image_sends_last) != 0;
}

bool InputImage::sends_state() const {
  return (word(protocol::input_image_options_at) & protocol::input_image_sends_state) != 0;
}

std::uint32_t InputImage::event_count(std::uint32_t group) const {
  return word(group_at(group));
}

std::uint16_t InputImage::event(std::uint32_t group, std::uint32_t index) const {
  return static_cast<std::uint16_t>(word(group_at(group) + 4 + 4 * std::size_t{index}));
}

Bytes InputImage::input(std::uint32_t set, std::uint32_t index) const {
  const std::size_t entry =
      protocol::input_image_header_bytes + reference_bytes * (std::size_t{set} * inputs_ + index);
  return {data_ + word(entry), word(entry + 4)};
}

StreamPiece InputImage::piece(std::uint32_t index) const {
  const std::size_t entry = word(protocol::input_image_pieces_at) + piece_bytes * index;
  return {word(entry), {data_ + word(entry + 4), word(entry + 8)}};
}

std::uint32_t InputImage::word(std::size_t offset) const {
  std::uint32_t value;
  std::memcpy(&value, data_ + offset, sizeof value);
  return value;
}

}  // namespace ethosu_sdk::app
