// The input image's reader: a good image, then damage of every kind.
#include "app/input_image.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "app/crc32.hpp"
#include "tests/support/check.hpp"

namespace {

using namespace ethosu_sdk;
using app::ImageError;

struct Parts {
  std::uint32_t magic = app::protocol::input_image_magic;
  std::uint32_t version = 5;
  std::uint32_t sets = 2;
  std::uint32_t inputs = 1;
  std::uint32_t repeats = 3;
  std::uint32_t groups = 2;
  std::uint32_t group[2][9] = {{2, 130, 391}, {1, 32}};  // a count, then numbers
  std::vector<std::uint32_t> references = {1232, 4, 1248, 16};
  std::uint32_t pieces[2] = {};  // where their table is, and how many
  std::vector<std::uint32_t> piece;
  std::uint32_t bytes = 1264;
};

std::vector<std::uint8_t> image_of(const Parts& parts) {
  std::vector<std::uint32_t> words(316);
  words[0] = parts.magic;
  words[1] = parts.version;
  words[2] = parts.bytes;
  words[4] = parts.sets;
  words[5] = parts.inputs;
  words[6] = parts.repeats;
  words[7] = parts.groups;
  words[8] = 0x636E6F4E;  // "Nonc"
  std::memcpy(&words[13], parts.pieces, sizeof parts.pieces);
  std::memcpy(&words[16], parts.group, sizeof parts.group);
  std::memcpy(&words[304], parts.references.data(), parts.references.size() * 4);
  words[308] = 0x44332211;
  std::copy(parts.piece.begin(), parts.piece.end(), words.begin() + 312);  // at byte 1248
  std::vector<std::uint8_t> image(words.size() * 4);
  std::memcpy(image.data(), words.data(), image.size());
  const std::uint32_t crc = app::crc32(image.data() + 16, image.size() - 16);
  std::memcpy(image.data() + 12, &crc, sizeof crc);
  return image;
}

ImageError open(const std::vector<std::uint8_t>& image, std::uint32_t inputs = 1) {
  app::InputImage reader;
  return reader.open(image.data(), image.size(), inputs);
}

void test_good() {
  const std::vector<std::uint8_t> image = image_of({});
  app::InputImage reader;
  CHECK(reader.open(image.data(), image.size(), 1) == ImageError::none);
  CHECK(reader.sets() == 2 && reader.repeats() == 3 && reader.bytes() == 1264);
  CHECK(reader.event_groups() == 2 && reader.event_count(0) == 2 && reader.event_count(1) == 1);
  CHECK(reader.event(0, 1) == 391 && reader.event(1, 0) == 32);
  CHECK(reader.nonce().size() == 16 && std::memcmp(reader.nonce().data(), "Nonc\0\0", 6) == 0);
  CHECK(app::InputImage().nonce().size() == 0);
  const Bytes first = reader.input(0, 0);
  CHECK(first.size() == 4 && first[0] == 0x11 && first.data() == image.data() + 1232);
  CHECK(reader.input(1, 0).size() == 16);
}

void test_damage() {
  const std::vector<std::uint8_t> image = image_of({});
  for (std::size_t size = 0; size < image.size(); ++size) {
    CHECK(open({image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size)}) != ImageError::none);
  }
  for (std::size_t i = 0; i < image.size(); ++i) {
    std::vector<std::uint8_t> flipped = image;
    flipped[i] ^= 0x10;
    CHECK(open(flipped) != ImageError::none);
  }
  CHECK(open(image, 2) == ImageError::wrong_inputs);
  CHECK(open(std::vector<std::uint8_t>(1264)) == ImageError::no_image);
}

// Damage under a matching CRC.
void test_contradictions() {
  Parts parts;
  parts.version = 1;
  CHECK(open(image_of(parts)) == ImageError::wrong_version);
  parts = {};
  for (const std::uint32_t events : {0U, 9U, 0xFFFFFFFFU}) {
    parts = {};
    parts.group[1][0] = events;
    CHECK(open(image_of(parts)) == ImageError::wrong_events);
  }
  parts = {};
  parts.groups = 33;
  CHECK(open(image_of(parts)) == ImageError::wrong_events);
  parts = {};
  parts.groups = 3;  // the third has no events
  CHECK(open(image_of(parts)) == ImageError::wrong_events);
  parts = {};
  parts.group[0][1] = 1024;
  CHECK(open(image_of(parts)) == ImageError::wrong_events);
  parts = {};
  parts.sets = 0;
  CHECK(open(image_of(parts)) == ImageError::wrong_counts);
  parts = {};
  parts.repeats = 0;
  CHECK(open(image_of(parts)) == ImageError::wrong_counts);
  parts = {};
  parts.repeats = 0x80000000;  // twice as many inferences wrap in 32 bits
  CHECK(open(image_of(parts)) == ImageError::wrong_counts);
  parts = {};
  parts.sets = 7;  // the table does not fit
  CHECK(open(image_of(parts)) == ImageError::wrong_size);
  parts = {};
  parts.sets = 0x20000001;  // 8 bytes each: wraps in 32 bits
  CHECK(open(image_of(parts)) == ImageError::wrong_size);
  constexpr std::uint32_t bad_references[][2] = {
      {1233, 4}, {1248, 17}, {1264, 1}, {0xFFFFFFF0, 16}, {1232, 0xFFFFFFFF}};
  for (const auto& reference : bad_references) {
    parts = {};
    parts.references = {1232, 4, reference[0], reference[1]};
    CHECK(open(image_of(parts)) == ImageError::wrong_reference);
  }
}

void test_pieces() {
  Parts parts;
  parts.pieces[0] = 1248;
  parts.pieces[1] = 1;
  parts.piece = {2, 1232, 8};  // of delegate 2
  const std::vector<std::uint8_t> image = image_of(parts);
  app::InputImage reader;
  CHECK(reader.open(image.data(), image.size(), 1) == ImageError::none);
  CHECK(reader.pieces() == 1 && reader.piece(0).delegate == 2);
  CHECK(reader.piece(0).commands.data() == image.data() + 1232 && reader.piece(0).commands.size() == 8);
  constexpr std::uint32_t bad_tables[][2] = {{1248, 2}, {1248, 0xFFFFFFFF}, {1244, 1},
                                             {1264, 1}, {0xFFFFFFF0, 1},    {1248, 0x15555556}};
  for (const auto& table : bad_tables) {
    Parts bad = parts;
    bad.pieces[0] = table[0];
    bad.pieces[1] = table[1];
    CHECK(open(image_of(bad)) == ImageError::wrong_pieces);
  }
  constexpr std::uint32_t bad_pieces[][2] = {{1232, 6},  {1236, 4},        {1264, 4},
                                             {1248, 20}, {0xFFFFFFF0, 16}, {1232, 0xFFFFFFFC}};
  for (const auto& piece : bad_pieces) {
    Parts bad = parts;
    bad.piece = {0, piece[0], piece[1]};
    CHECK(open(image_of(bad)) == ImageError::wrong_pieces);
  }
}

}  // namespace

int main() {
  test_good();
  test_pieces();
  test_damage();
  test_contradictions();
  return host::failed_checks == 0 ? 0 : 1;
}
