// The input image: how inputs reach the firmware without a rebuild. Laid out in the SDK: program/protocol.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/protocol.hpp"
#include "base/span.hpp"

namespace ethosu_sdk::app {

enum class ImageError : std::uint8_t {
  none,
  no_image,  // the magic is missing
  wrong_version,
  wrong_size,  // longer than the pool, or shorter than its own tables
  wrong_crc,
  wrong_inputs,  // not as many inputs as the method has
  wrong_counts,  // no sets of inputs, no repeats, or too many of them
  wrong_events,
  wrong_reference,  // an input outside the image, or misaligned
  wrong_pieces,     // likewise of a command stream's pieces
};

const char* image_error_name(ImageError error);

// A part of the command stream of delegate `delegate` that runs as a job of its own.
struct StreamPiece {
  std::uint32_t delegate;
  Bytes commands;
};

class InputImage {
 public:
  // `data` is the whole pool; the image says how much of it it uses. Everything is checked here, so that the
  // accessors cannot fail.
  ImageError open(const std::uint8_t* data, std::size_t capacity, std::uint32_t method_inputs);

  std::uint32_t bytes() const { return bytes_; }
  // What the host made up for this run alone; nothing when there is no image.
  Bytes nonce() const;
  // Every set of inputs is run `repeats` times in turn.
  std::uint32_t sets() const { return sets_; }
  std::uint32_t repeats() const { return repeats_; }
  // Repeat n counts the events of group n modulo this; 0: those that the driver chooses.
  std::uint32_t event_groups() const { return groups_; }
  std::uint32_t event_count(std::uint32_t group) const;
  // Whether the processor's cycles of each instruction are to be reported.
  bool counts_cycles() const;
  // Whether every repeat begins with the state that the program brings.
  bool resets_state() const;
  // Whether the bytes of outputs are wanted of the last set alone.
  bool sends_last() const;
  // Whether the bytes of the state are wanted after the last set.
  bool sends_state() const;
  // Where the sequence block is; 0: there is none. Sequence::open checks it.
  std::uint32_t sequence_at() const { return word(protocol::input_image_sequence_at); }
  std::uint16_t event(std::uint32_t group, std::uint32_t index) const;
  Bytes input(std::uint32_t set, std::uint32_t index) const;
  // With pieces, the last repeat of every set runs those of each delegate, in turn, instead of its stream.
  std::uint32_t pieces() const { return pieces_; }
  StreamPiece piece(std::uint32_t index) const;

 private:
  ImageError read_header(std::uint32_t method_inputs);
  ImageError check_events() const;
  ImageError check_references() const;
  ImageError check_pieces() const;
  bool holds(std::uint32_t offset, std::uint32_t size) const;
  std::uint32_t word(std::size_t offset) const;

  const std::uint8_t* data_ = nullptr;
  std::uint32_t bytes_ = 0;
  std::uint32_t sets_ = 0;
  std::uint32_t inputs_ = 0;
  std::uint32_t repeats_ = 0;
  std::uint32_t groups_ = 0;
  std::uint32_t pieces_ = 0;
};

}  // namespace ethosu_sdk::app
