// What a device takes over its UART before a run: a program and an input image, in checked frames. Laid out
// in the SDK: program/protocol.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "app/protocol.hpp"
#include "app/record_writer.hpp"
#include "base/span.hpp"

namespace ethosu_sdk::app {

// What a `device` record says.
struct DeviceIdentity {
  const char* firmware;
  const char* board;
  std::uint32_t code_bytes;
  const char* code_sha256;
  const char* simulator;  // empty: none says to be one
};

class Receiver {
 public:
  // Where the parts of the content go.
  struct Rooms {
    Span<std::uint8_t> program_header;
    Span<std::uint8_t> program;
    Span<std::uint8_t> image;
  };

  Receiver(const Rooms& rooms, const DeviceIdentity& identity, RecordWriter& records)
      : rooms_(rooms), identity_(identity), records_(records) {}

  void announce();
  // True once all has arrived, was checked and is to be run; the session is over with it.
  bool take(std::uint8_t byte);
  // Nothing came for a while: a frame that has begun does not go on.
  void give_up();
  void report_end(std::uint32_t exit_code);

 private:
  struct Header {
    std::uint32_t magic;
    std::uint32_t session;
    std::uint32_t kind;
    std::uint32_t number;
    std::uint32_t bytes;
    std::uint32_t crc;
  };
  static_assert(sizeof(Header) == protocol::frame_header_bytes);
  static constexpr std::size_t crc_bytes = 4;

  bool take_frame();
  void take_open();
  void take_chunk();
  bool take_start();
  void store(std::size_t offset, std::size_t size);
  std::uint32_t content_crc() const;
  std::size_t content_bytes() const { return program_bytes_ + image_bytes_; }
  std::uint32_t chunks() const;
  Header header() const;
  const std::uint8_t* payload() const { return frame_ + sizeof(Header); }
  void answer(const char* state, const char* detail = "");

  Rooms rooms_;
  DeviceIdentity identity_;
  RecordWriter& records_;
  std::uint8_t frame_[sizeof(Header) + protocol::wire_chunk_bytes + crc_bytes] = {};
  std::size_t filled_ = 0;  // bytes of the frame so far
  bool is_open_ = false;
  std::uint32_t session_ = 0;
  std::uint32_t next_ = 0;  // chunk
  std::uint32_t program_bytes_ = 0;
  std::uint32_t image_bytes_ = 0;
  std::uint8_t opening_[protocol::frame_open_bytes] = {};  // the payload that opened the session
};

}  // namespace ethosu_sdk::app
