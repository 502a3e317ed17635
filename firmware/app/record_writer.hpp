// Writes one record after the other to a sink, byte by byte: no record needs a buffer.
//
// The writer takes one value for each field, in the order of protocol.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "app/crc32.hpp"
#include "app/protocol.hpp"
#include "app/sha256.hpp"
#include "base/span.hpp"
#include "base/text.hpp"

namespace ethosu_sdk::app {

struct NumberPair {
  std::uint32_t first;
  std::uint32_t second;
};

struct Crc32Digits {
  std::uint32_t value;
};

struct Base64 {
  Bytes bytes;
};

class RecordWriter {
 public:
  explicit RecordWriter(Sink& sink) : sink_(sink) {}

  // One record: a value for each field, in their order.
  template <std::size_t N, typename... Values>
  void write(const protocol::Record<N>& record, const Values&... values) {
    static_assert(sizeof...(Values) == N, "one value for each field");
    begin(record.name);
    const protocol::Field* field = record.fields;
    (member(*field++, values), ...);
    finish();
  }

  // Records written so far; the next one's sequence number.
  std::uint32_t count() const { return count_; }
  // What only a run that knows `nonce` can say of the records written so far: see program/protocol.py.
  void seal(Bytes nonce, char (&hex)[sha256_hex_size]) const;

 private:
  void begin(const char* name);
  void finish();
  void key(const protocol::Field& field, protocol::Kind kind);
  void number(const protocol::Field& field, std::uint64_t value);
  template <typename Unsigned, typename = std::enable_if_t<std::is_unsigned_v<Unsigned>>>
  void member(const protocol::Field& field, Unsigned value) {
    number(field, value);
  }
  void member(const protocol::Field& field, const char* value);
  void member(const protocol::Field& field, Crc32Digits value);
  void member(const protocol::Field& field, const Base64& value);
  void member(const protocol::Field& field, Span<const NumberPair> value);
  void member(const protocol::Field& field, Span<const std::int32_t> value);

  // A character under the CRC; one of the payload, whose length is counted too.
  class Covered final : public Sink {
   public:
    explicit Covered(Sink& sink) : sink_(sink) {}
    void put(char character) override;
    Crc32 crc;
    Sha256 sha256;  // of all records
    std::uint32_t characters = 0;

   private:
    Sink& sink_;
  };

  Sink& sink_;
  Covered covered_{sink_};
  std::uint32_t payload_start_ = 0;
  std::uint32_t count_ = 0;
  bool first_ = true;
};

}  // namespace ethosu_sdk::app
