// Sequence blocks, good ones and damaged ones, and how an index is chosen.
#include "app/sequence.hpp"

#include <cstring>
#include <limits>
#include <vector>

#include "app/choosing.hpp"
#include "tests/support/check.hpp"
#include "tests/support/values.hpp"

namespace {

using namespace ethosu_sdk;

constexpr std::uint32_t block_at = 1216;
constexpr std::uint32_t inputs = 2;

// One feed, one tensor of the state, and 16 bytes of values behind them.
std::vector<std::uint8_t> block_of(const std::vector<std::uint32_t>& header,
                                   const std::vector<std::uint32_t>& feed,
                                   const std::vector<std::uint32_t>& state) {
  constexpr std::size_t feed_words = app::protocol::sequence_feed_bytes / 4;
  std::vector<std::uint32_t> words(block_at / 4 + 4 + feed_words + 4 + 4);
  std::memcpy(&words[block_at / 4], header.data(), header.size() * 4);
  std::memcpy(&words[block_at / 4 + 4], feed.data(), feed.size() * 4);
  std::memcpy(&words[block_at / 4 + 4 + feed_words], state.data(), state.size() * 4);
  std::vector<std::uint8_t> image(words.size() * 4);
  std::memcpy(image.data(), words.data(), image.size());
  return image;
}

bool opens(std::vector<std::uint8_t> image, std::uint32_t at = block_at) {
  return app::Sequence().open({image.data(), image.size()}, at, inputs);
}

constexpr std::uint32_t values_at = block_at + 16 + app::protocol::sequence_feed_bytes + 16;
const std::vector<std::uint32_t> header = {1, 1, 7, 0};
// Form, input, output, row, room and its bytes, first step, factor, top_k, seed, stops.
const std::vector<std::uint32_t> feed = {2, 1, 0, 0xFFFFFFFF, values_at, 8, 3, 0, 0, 5, 1, 1, 42};
const std::vector<std::uint32_t> state = {0, 32, 16, values_at};

void test_good() {
  std::vector<std::uint8_t> image = block_of(header, feed, state);
  app::Sequence sequence;
  CHECK(sequence.open({image.data(), image.size()}, block_at, inputs));
  CHECK(sequence.feeds() == 1 && sequence.states() == 1 && sequence.first_step() == 7);
  const app::Feed row = sequence.feed(0);
  CHECK(row.input == 1 && row.room.size() == 8 && row.first == 3 && row.seed == 0x100000005);
  CHECK(row.stops_at(42) && !row.stops_at(0));
  CHECK(sequence.state(0).offset == 32 && sequence.state(0).initial.size() == 16);
  CHECK(opens(image, 0));  // there is none
}

void test_damage() {
  for (const std::uint32_t at : {4U, block_at + 4, values_at + 16, 0xFFFFFFF0U}) {
    CHECK(!opens(block_of(header, feed, state), at));
  }
  for (const std::uint32_t count : {2U, 17U, 0xFFFFFFFFU}) {
    CHECK(!opens(block_of({count, 1, 0, 0}, feed, state)));
    CHECK(!opens(block_of({1, count == 2 ? 3 : count, 0, 0}, feed, state)));
  }
  constexpr std::uint32_t bad[][2] = {{0, 0},  {0, 5},         {1, inputs},   {4, values_at + 4},
                                      {4, 0},  {5, 17},        {5, 1U << 31}, {8, 257},
                                      {11, 5}, {4, 0xFFFFFFF0}};
  for (const auto& change : bad) {
    std::vector<std::uint32_t> row = feed;
    row[change[0]] = change[1];
    CHECK(!opens(block_of(header, row, state)));
  }
  CHECK(!opens(block_of(header, feed, {0, 32, 17, values_at})));
  CHECK(!opens(block_of(header, feed, {0, 32, 16, 8})));
}

void test_choices() {
  CHECK(app::random_bits(1234567, 0) == 6457827717110365317U);  // Rosetta Code, Splitmix64
  CHECK(app::random_bits(1234567, 4) == 16408922859458223821U);
  float numbers[] = {-1.0F, 3.0F, 3.0F, 0.0F};
  const TensorValue tensor({1, 4}, ScalarType::float32, numbers);
  const app::Row row(tensor.tensor, 0, 4);
  std::uint32_t index = 9;
  CHECK(app::choose_greatest(row, index) && index == 1);
  app::Feed drawing{};
  drawing.factor = 1e9F;  // so cold that only the largest have a weight
  bool seen[4] = {};
  for (std::uint64_t draw = 0; draw < 64; ++draw) {
    CHECK(app::choose_drawn(row, drawing, app::random_bits(1, draw) % 97, index));
    seen[index] = true;
  }
  CHECK(!seen[0] && seen[1] && seen[2] && !seen[3]);
  drawing.top_k = 1;  // of the two equal ones, the one with the lower index
  for (std::uint64_t draw = 0; draw < 8; ++draw) {
    CHECK(app::choose_drawn(row, drawing, draw, index) && index == 1);
  }
  numbers[1] = std::numeric_limits<float>::infinity();
  CHECK(!app::choose_drawn(row, drawing, 0, index));
  numbers[1] = std::numeric_limits<float>::quiet_NaN();
  CHECK(!app::choose_greatest(row, index));
}

}  // namespace

int main() {
  test_good();
  test_damage();
  test_choices();
  return host::failed_checks == 0 ? 0 : 1;
}
