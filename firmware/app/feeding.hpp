// Computes the inputs of a sequence's next step from the outputs of the one before.
#pragma once

#include <cstdint>

#include "app/failure.hpp"
#include "app/record_writer.hpp"
#include "app/sequence.hpp"
#include "runtime/method.hpp"

namespace ethosu_sdk::app {

class Feeding {
 public:
  Feeding(const Sequence& sequence, RecordWriter& records) : sequence_(sequence), records_(records) {}

  // After set `set` has run `method` as inference number `inference`: fills the rooms of all inputs of the
  // next set. False, with the reason, for a feed that does not fit the method or has nothing to choose.
  bool prepare_next(const runtime::Method& method, std::uint32_t set, std::uint32_t inference,
                    Failure& failure);
  // Before set `set` runs `target` as inference number `inference`: the same for its inputs that come from
  // the outputs of the call before, which ran `source`.
  bool take(const runtime::Method& source, const runtime::Method& target, std::uint32_t set,
            std::uint32_t inference, Failure& failure);
  // Whether the last call chose an index at which the sequence ends.
  bool stops() const { return stops_; }

 private:
  bool fill(const Feed& feed, Failure& failure);
  bool copy(const Feed& feed, const Tensor& input, Failure& failure);
  bool count(const Feed& feed, const Tensor& input, Failure& failure);
  bool choose(const Feed& feed, const Tensor& input, Failure& failure);

  const Sequence& sequence_;
  RecordWriter& records_;
  const runtime::Method* source_ = nullptr;
  const runtime::Method* target_ = nullptr;
  std::uint32_t set_ = 0;
  std::uint32_t inference_ = 0;
  bool stops_ = false;
};

}  // namespace ethosu_sdk::app
