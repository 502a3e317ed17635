#include "app/record_writer.hpp"

namespace ethosu_sdk::app {
namespace {

void write_json_string(Sink& sink, const char* text) {
  sink.put('"');
  for (; *text != '\0'; ++text) {
    const auto character = static_cast<unsigned char>(*text);
    if (character == '"' || character == '\\') {
      sink.put('\\');
      sink.put(*text);
    } else if (character < 0x20 || character > 0x7E) {  // the line is ASCII, whatever the model's names are
      write(sink, "\\u");
      write_hex_digits(sink, character, 4);
    } else {
      sink.put(*text);
    }
  }
  sink.put('"');
}

void write_base64(Sink& sink, Bytes bytes) {
  constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const std::uint32_t group = std::uint32_t{bytes[i]} << 16 |
                                (left > 1 ? std::uint32_t{bytes[i + 1]} << 8 : 0) |
                                (left > 2 ? std::uint32_t{bytes[i + 2]} : 0);
    sink.put(alphabet[group >> 18]);
    sink.put(alphabet[group >> 12 & 0x3F]);
    sink.put(left > 1 ? alphabet[group >> 6 & 0x3F] : '=');
    sink.put(left > 2 ? alphabet[group & 0x3F] : '=');
  }
}

}  // namespace

// Not inlined: the many places that write a character would each get a copy of the CRC.
__attribute__((noinline)) void RecordWriter::Covered::put(char character) {
  crc.add(static_cast<std::uint8_t>(character));
  sha256.add(static_cast<std::uint8_t>(character));
  ++characters;
  sink_.put(character);
}

void RecordWriter::begin(const char* name) {
  write_all(sink_, protocol::record_prefix, " ");
  covered_.crc = {};
  covered_.characters = 0;
  write_all(covered_, count_, " ", name, " ");
  payload_start_ = covered_.characters;
  first_ = true;
  covered_.put('{');
}

void RecordWriter::finish() {
  covered_.put('}');
  write_all(sink_, " ", covered_.characters - payload_start_, " ");
  write_hex_digits(sink_, covered_.crc.value(), 8);
  sink_.put('\n');
  covered_.sha256.add('\n');
  ++count_;
}

void RecordWriter::seal(Bytes nonce, char (&hex)[sha256_hex_size]) const {
  std::uint8_t digest[sha256_bytes];
  covered_.sha256.digest(digest);
  Sha256 sealed;
  sealed.add(nonce.data(), nonce.size());
  sealed.add(digest, sizeof digest);
  sealed.digest(digest);
  sha256_digits(digest, hex);
}

void RecordWriter::key(const protocol::Field& field, protocol::Kind kind) {
  if (field.kind != kind) {
    __builtin_trap();  // a record written against protocol.hpp: the first run of a test shows it
  }
  if (!first_) {
    covered_.put(',');
  }
  first_ = false;
  write_json_string(covered_, field.name);
  covered_.put(':');
}

void RecordWriter::number(const protocol::Field& field, std::uint64_t value) {
  key(field, protocol::Kind::number);
  ethosu_sdk::write(covered_, value);
}

void RecordWriter::member(const protocol::Field& field, const char* value) {
  key(field, protocol::Kind::text);
  write_json_string(covered_, value);
}

void RecordWriter::member(const protocol::Field& field, Crc32Digits value) {
  key(field, protocol::Kind::text);
  covered_.put('"');
  write_hex_digits(covered_, value.value, 8);
  covered_.put('"');
}

void RecordWriter::member(const protocol::Field& field, const Base64& value) {
  key(field, protocol::Kind::text);
  covered_.put('"');
  write_base64(covered_, value.bytes);
  covered_.put('"');
}

void RecordWriter::member(const protocol::Field& field, Span<const NumberPair> value) {
  key(field, protocol::Kind::list);
  covered_.put('[');
  for (std::size_t i = 0; i < value.size(); ++i) {
    write_all(covered_, i == 0 ? "[" : ",[", value[i].first, ",", value[i].second, "]");
  }
  covered_.put(']');
}

void RecordWriter::member(const protocol::Field& field, Span<const std::int32_t> value) {
  key(field, protocol::Kind::list);
  covered_.put('[');
  for (std::size_t i = 0; i < value.size(); ++i) {
    write_all(covered_, i == 0 ? "" : ",", value[i]);
  }
  covered_.put(']');
}

}  // namespace ethosu_sdk::app
