// The sequence block of an input image: which outputs of a step become inputs of the next, and which tensors
// are the program's state. Laid out in sdk/ethosu_sdk/program/protocol.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/protocol.hpp"
#include "base/span.hpp"

namespace ethosu_sdk::app {

struct Feed {
  std::uint32_t form;
  std::uint32_t input;
  std::uint32_t output;
  std::uint32_t row;
  Span<std::uint8_t> room;  // where the input's value is made
  std::uint32_t first;      // the first step that takes it
  std::uint32_t end;        // the last one for which it is computed
  bool takes;               // from the last step of the call before, for this one step
  float factor;             // of a sample's weights
  std::uint32_t top_k;
  std::uint64_t seed;
  std::uint32_t stop_count;
  std::uint32_t stops[protocol::feed_max_stops];

  bool is_choice() const { return form == protocol::feed_argmax || form == protocol::feed_sample; }
  bool stops_at(std::uint32_t choice) const;
};

// A tensor that the program keeps from inference to inference, in planned buffer number `buffer`.
struct StateTensor {
  std::uint32_t buffer;
  std::uint32_t offset;
  std::uint32_t bytes;
  Bytes initial;  // empty: the program's own
};

// Inferences of one method: of as many sets as there are, behind those of the call before.
struct Call {
  std::uint32_t method;
  std::uint32_t sets;
};

class Sequence {
 public:
  // `image` is all of a checked image, the block is at byte `at` of it (0: there is none). False when it is
  // damaged: the accessors cannot fail after true.
  bool open(Span<std::uint8_t> image, std::uint32_t at, std::uint32_t inputs);

  std::uint32_t feeds() const { return feeds_; }
  Feed feed(std::uint32_t index) const;
  std::uint32_t states() const { return states_; }
  StateTensor state(std::uint32_t index) const;
  std::uint32_t calls() const { return calls_; }
  Call call(std::uint32_t index) const;
  // Whether the calls, if there are any, are of methods with numbers below `methods`, and of so many sets.
  bool calls_fit(std::uint32_t methods, std::uint32_t sets) const;
  // The number of the image's first set in a longer sequence: samples are drawn by the number of the step.
  std::uint32_t first_step() const { return first_step_; }

 private:
  bool check_feed(std::size_t row, std::uint32_t inputs) const;
  bool check_state(std::size_t row) const;
  bool holds(std::uint32_t offset, std::uint32_t size) const;
  std::size_t feed_at(std::uint32_t index) const;
  std::size_t state_at(std::uint32_t index) const;
  std::size_t call_at(std::uint32_t index) const;
  std::uint32_t word(std::size_t offset) const;

  Span<std::uint8_t> image_;
  std::uint32_t at_ = 0;
  std::uint32_t feeds_ = 0;
  std::uint32_t states_ = 0;
  std::uint32_t calls_ = 0;
  std::uint32_t first_step_ = 0;
};

}  // namespace ethosu_sdk::app
