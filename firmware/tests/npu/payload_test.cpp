// The payload decoder: a payload built by hand, then every truncation of it and every kind of damage.
#include "npu/payload.hpp"

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/check.hpp"

namespace {

using namespace ethosu_sdk;
using npu::Code;
using Words = std::vector<std::uint32_t>;

std::string as_bytes(const Words& words) {
  std::string bytes(words.size() * 4, '\0');
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

std::string block(const char* name, const std::string& data, char external = 0) {
  std::string bytes(32, '\0');
  std::memcpy(bytes.data(), name, std::strlen(name));
  const auto size = static_cast<std::uint32_t>(data.size());
  std::memcpy(bytes.data() + 16, &size, sizeof size);
  bytes[20] = external;
  bytes += data;
  bytes.resize((bytes.size() + 15) / 16 * 16);
  return bytes;
}

struct Parts {
  Words actions{0x31504F43, 0x00100001, 0x00001807, 0x10066001, 5, 5, 5, 0x00040002, 1, 2, 3, 4};
  std::string weights = "w";
  Words scratch{256};
  Words inputs{1, 1, 1, 1, 2, 8, 4, 1, 16, 1};
  Words outputs{2, 1, 1, 1, 1, 1, 8, 2, 0, 1, 1, 1, 1, 1, 1, 4, 4, 240, 1};
};

std::string payload_of(const Parts& parts) {
  return block("vela_bin_stream", "") + block("cmd_data", as_bytes(parts.actions)) +
         block("weight_data", parts.weights) + block("scratch_size", as_bytes(parts.scratch)) +
         block("inputs", as_bytes(parts.inputs)) + block("outputs", as_bytes(parts.outputs)) +
         block("vela_end_stream", "");
}

alignas(16) std::uint8_t storage[1024];

npu::Result parse(const std::string& bytes, npu::Payload& payload, std::size_t shift = 0) {
  std::memcpy(storage + shift, bytes.data(), bytes.size());
  return npu::parse_payload(storage + shift, bytes.size(), payload);
}

Code code_of(const Parts& parts) {
  npu::Payload payload;
  return parse(payload_of(parts), payload).code;
}

void test_good() {
  npu::Payload payload;
  CHECK(parse(payload_of({}), payload).ok());
  CHECK(payload.config_word == 0x1807 && payload.arch_word == 0x10066001);
  CHECK(payload.command_bytes == 16 && payload.command_stream[0] == 1 && payload.command_stream[12] == 4);
  CHECK(payload.weight_bytes == 1 && payload.weights[0] == 'w');
  CHECK(payload.scratch_bytes == 256 && payload.inputs.count == 1 && payload.outputs.count == 2);
  const npu::Slot input = payload.inputs.at(0);
  CHECK(input.bytes == 64 && input.offset == 16 && input.region == 1);
  const npu::Slot output = payload.outputs.at(1);
  CHECK(output.bytes == 16 && output.offset == 240);
}

void test_every_truncation() {
  const std::string whole = payload_of({});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    npu::Payload payload;
    CHECK(!parse(whole.substr(0, size), payload).ok());
  }
}

void test_misaligned() {
  npu::Payload payload;
  CHECK(parse(payload_of({}), payload, 4).code == Code::payload_misaligned);
}

void test_blocks() {
  npu::Payload payload;
  const std::string whole = payload_of({});
  CHECK(parse(block("vela_bin_stream", "") + whole, payload).code == Code::payload_block_repeated);
  CHECK(parse(whole.substr(32), payload).code == Code::payload_unknown_block);  // no start marker
  CHECK(parse(block("vela_bin_stream", "") + block("surprise", ""), payload).code ==
        Code::payload_unknown_block);
  CHECK(parse(block("vela_bin_stream", "") + block("weight_data", "x", 1), payload).code ==
        Code::payload_external_block);
  CHECK(parse(block("vela_bin_stream", "") + block("vela_end_stream", ""), payload).code ==
        Code::payload_block_missing);
  std::string huge = whole;
  huge[32 + 16 + 3] = '\x7F';  // the size of cmd_data
  CHECK(parse(huge, payload).code == Code::payload_truncated);
}

// Finds its block under the key of 64 zeros.
const std::string known_key(64, '0');
alignas(16) std::uint8_t found_block[64];

bool find(const void* context, const char* key, const std::uint8_t*& data, std::size_t& size) {
  data = found_block;
  size = *static_cast<const std::size_t*>(context);
  return key == known_key;
}

std::string with_external(const char* name, const std::string& key, char flag = 1) {
  std::string bytes = payload_of({});
  const std::size_t at = bytes.find(name);
  const std::size_t end = bytes.find(std::strcmp(name, "cmd_data") == 0 ? "weight_data" : "scratch_size");
  return bytes.substr(0, at) + block(name, key, flag) + bytes.substr(end);
}

Code code_of_external(const std::string& bytes, npu::Payload& payload, std::size_t size) {
  std::memcpy(storage, bytes.data(), bytes.size());
  return npu::parse_payload(storage, bytes.size(), payload, {find, &size}).code;
}

void test_external_blocks() {
  npu::Payload payload;
  CHECK(code_of_external(with_external("weight_data", known_key), payload, 48) == Code::ok);
  CHECK(payload.weights == found_block && payload.weight_bytes == 48);
  const std::string actions = as_bytes(Parts{}.actions);
  std::memcpy(found_block, actions.data(), actions.size());
  CHECK(code_of_external(with_external("cmd_data", known_key), payload, actions.size()) == Code::ok);
  CHECK(payload.command_stream == found_block + 32 && payload.command_bytes == 16);
  CHECK(code_of_external(with_external("cmd_data", known_key), payload, 6) == Code::payload_bad_size);
  for (const std::string& key : {std::string(64, '1'), std::string(63, '0'), std::string(65, '0')}) {
    CHECK(code_of_external(with_external("weight_data", key), payload, 48) == Code::payload_external_block);
  }
  CHECK(code_of_external(with_external("weight_data", known_key, 2), payload, 48) ==
        Code::payload_external_block);
  const std::string inputs = block("vela_bin_stream", "") + block("inputs", known_key, 1);
  CHECK(code_of_external(inputs, payload, 48) == Code::payload_external_block);
  npu::Payload without;
  CHECK(parse(with_external("weight_data", known_key), without).code == Code::payload_external_block);
}

void test_actions() {
  Parts parts;
  parts.actions[0] = 0x32504F43;
  CHECK(code_of(parts) == Code::payload_not_cop1);
  parts = {};
  parts.actions[7] = 0x00050002;  // longer than the block
  CHECK(code_of(parts) == Code::payload_bad_size);
  parts = {};
  parts.actions[4] = 3;
  CHECK(code_of(parts) == Code::payload_unknown_action);
  parts = {};
  parts.actions[1] = 5;  // the configuration becomes actions of its own
  CHECK(code_of(parts) == Code::payload_unknown_action);
  parts = {};
  parts.actions.resize(7);  // no command stream
  CHECK(code_of(parts) == Code::payload_bad_size);
}

void test_slots() {
  Parts parts;
  parts.inputs[8] = 200;  // 200 + 64 > 256
  CHECK(code_of(parts) == Code::payload_bad_slot);
  parts = {};
  parts.inputs[9] = 2;
  CHECK(code_of(parts) == Code::payload_bad_slot);
  parts = {};
  parts.inputs[1] = 0x80000000;
  parts.inputs[2] = 2;  // the product wraps to 0 in 32 bits
  CHECK(code_of(parts) == Code::payload_bad_slot);
  parts = {};
  parts.inputs[0] = 0x20000000;
  CHECK(code_of(parts) == Code::payload_bad_size);
  parts = {};
  parts.scratch.push_back(0);
  CHECK(code_of(parts) == Code::payload_bad_size);
}

}  // namespace

int main() {
  test_good();
  test_every_truncation();
  test_misaligned();
  test_blocks();
  test_external_blocks();
  test_actions();
  test_slots();
  return host::failed_checks == 0 ? 0 : 1;
}
