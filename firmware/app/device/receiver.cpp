#include "app/device/receiver.hpp"

#include <algorithm>
#include <cstring>

#include "app/crc32.hpp"

namespace ethosu_sdk::app {
namespace {

// The payload of FRAME_OPEN.
struct Opening {
  std::uint32_t version;
  std::uint32_t program_header[5];  // magic, version, bytes, mode, CRC
  std::uint32_t image_bytes;
  std::uint32_t content_crc;
};
static_assert(sizeof(Opening) == protocol::frame_open_bytes);
constexpr std::size_t program_bytes_word = 2;

template <typename Words>
Words words_at(const std::uint8_t* bytes) {
  Words words;
  std::memcpy(&words, bytes, sizeof words);
  return words;
}

constexpr std::uint8_t magic_byte(std::size_t index) {
  return static_cast<std::uint8_t>(protocol::frame_magic >> (8 * index));
}

}  // namespace

void Receiver::announce() {
  records_.write(protocol::device, protocol::wire_version, identity_.firmware, identity_.board,
                 identity_.code_bytes, identity_.code_sha256, identity_.simulator);
}

void Receiver::answer(const char* state, const char* detail) {
  records_.write(protocol::transfer, is_open_ ? session_ : 0U, state, next_, detail);
}

void Receiver::report_end(std::uint32_t exit_code) {
  records_.write(protocol::transfer, session_, protocol::wire_ended, exit_code, "");
}

Receiver::Header Receiver::header() const {
  return words_at<Header>(frame_);
}

std::uint32_t Receiver::chunks() const {
  return static_cast<std::uint32_t>((content_bytes() + protocol::wire_chunk_bytes - 1) /
                                    protocol::wire_chunk_bytes);
}

void Receiver::give_up() {
  if (filled_ >= sizeof(std::uint32_t)) {  // less may be anything
    answer(protocol::wire_again, "the frame ended early");
  }
  filled_ = 0;
}

bool Receiver::take(std::uint8_t byte) {
  if (filled_ < sizeof(std::uint32_t) && byte != magic_byte(filled_)) {
    filled_ = byte == magic_byte(0) ? 1 : 0;
    frame_[0] = byte;
    return false;
  }
  frame_[filled_++] = byte;
  if (filled_ < sizeof(Header)) {
    return false;
  }
  const Header read = header();
  if (filled_ == sizeof(Header) &&
      (read.crc != crc32(frame_, offsetof(Header, crc)) || read.bytes > protocol::wire_chunk_bytes)) {
    filled_ = 0;  // what follows is of no known length: the next magic begins a frame
    answer(protocol::wire_again, "the header is damaged");
    return false;
  }
  const std::size_t covered = sizeof(Header) + read.bytes;
  if (filled_ < covered + crc_bytes) {
    return false;
  }
  filled_ = 0;
  if (words_at<std::uint32_t>(frame_ + covered) != crc32(frame_, covered)) {
    answer(protocol::wire_again, "the payload is damaged");
    return false;
  }
  return take_frame();
}

bool Receiver::take_frame() {
  const Header read = header();
  switch (read.kind) {
    case protocol::frame_identify:
      announce();
      return false;
    case protocol::frame_open:
      take_open();
      return false;
    case protocol::frame_chunk:
    case protocol::frame_start:
      if (!is_open_ || read.session != session_) {
        answer(protocol::wire_refused, is_open_ ? "another session is open" : "no session is open");
        return false;
      }
      if (read.kind == protocol::frame_start) {
        return take_start();
      }
      take_chunk();
      return false;
    default:
      answer(protocol::wire_refused, "the kind of the frame is not known");
      return false;
  }
}

void Receiver::take_open() {
  const Header read = header();
  if (read.bytes != sizeof(Opening)) {
    return answer(protocol::wire_refused, "the opening has another size");
  }
  const auto opening = words_at<Opening>(payload());
  if (opening.version != protocol::wire_version) {
    return answer(protocol::wire_refused, "the firmware has another version of the transfer");
  }
  if (is_open_ && session_ == read.session && std::memcmp(opening_, payload(), sizeof opening_) == 0) {
    return answer(protocol::wire_ready);
  }
  is_open_ = false;
  next_ = 0;
  if (opening.program_header[program_bytes_word] > rooms_.program.size()) {
    return answer(protocol::wire_refused, "the program is larger than the room for it");
  }
  if (opening.image_bytes > rooms_.image.size()) {
    return answer(protocol::wire_refused, "the input image is larger than the room for it");
  }
  is_open_ = true;
  session_ = read.session;
  program_bytes_ = opening.program_header[program_bytes_word];
  image_bytes_ = opening.image_bytes;
  std::memcpy(opening_, payload(), sizeof opening_);
  answer(protocol::wire_ready);
}

void Receiver::take_chunk() {
  const Header read = header();
  if (read.number < next_) {
    return answer(protocol::wire_taken);
  }
  const std::size_t offset = std::size_t{next_} * protocol::wire_chunk_bytes;
  if (read.number != next_ || next_ >= chunks()) {
    return answer(protocol::wire_again, "another chunk is due");
  }
  if (read.bytes != std::min<std::size_t>(protocol::wire_chunk_bytes, content_bytes() - offset)) {
    return answer(protocol::wire_refused, "the chunk has another size");
  }
  store(offset, read.bytes);
  ++next_;
  answer(protocol::wire_taken);
}

// A chunk may hold the end of the program and the beginning of the image.
void Receiver::store(std::size_t offset, std::size_t size) {
  const std::size_t of_program =
      offset < program_bytes_ ? std::min<std::size_t>(size, program_bytes_ - offset) : 0;
  std::copy_n(payload(), of_program, rooms_.program.data() + offset);
  std::copy_n(payload() + of_program, size - of_program,
              rooms_.image.data() + (offset + of_program - program_bytes_));
}

std::uint32_t Receiver::content_crc() const {
  Crc32 crc;
  crc.add(rooms_.program.data(), program_bytes_);
  crc.add(rooms_.image.data(), image_bytes_);
  return crc.value();
}

bool Receiver::take_start() {
  if (next_ != chunks()) {
    answer(protocol::wire_again, "chunks are missing");
    return false;
  }
  const auto opening = words_at<Opening>(opening_);
  if (opening.content_crc != content_crc()) {
    is_open_ = false;
    answer(protocol::wire_refused, "the content's CRC does not match");
    return false;
  }
  std::memcpy(rooms_.program_header.data(), opening.program_header, sizeof opening.program_header);
  answer(protocol::wire_running);
  is_open_ = false;
  return true;
}

}  // namespace ethosu_sdk::app
