#include "npu/payload.hpp"

#include <cstring>

namespace ethosu_sdk::npu {
namespace {

constexpr std::size_t name_bytes = 16;
constexpr std::size_t header_bytes = 32;
constexpr std::size_t size_at = 16;
constexpr std::size_t external_at = 20;
constexpr std::size_t key_bytes = 64;  // hexadecimal digits of a SHA-256
constexpr std::size_t slot_words = 9;  // shape[6], element size, offset, region
constexpr std::size_t shape_words = 6;

// Driver actions of a COP1 list: low byte the kind, high half a parameter (Vela 5.1.0, driver actions).
constexpr std::uint32_t cop1 = 0x31504F43;
constexpr std::uint32_t action_config = 1;
constexpr std::uint32_t action_command_stream = 2;
constexpr std::uint32_t action_nop = 5;

enum Block : std::uint8_t { command, weights, scratch, inputs, outputs, begin, end, block_count };
// Names are cut to 15 characters by the writer, and NUL padded.
constexpr const char* block_names[block_count] = {"cmd_data", "weight_data",     "scratch_size",   "inputs",
                                                  "outputs",  "vela_bin_stream", "vela_end_stream"};
constexpr std::uint32_t all_blocks = (1U << block_count) - 1;

struct View {
  const std::uint8_t* data = nullptr;
  std::uint32_t size = 0;
};

std::uint32_t word_at(const std::uint8_t* data) {
  std::uint32_t value;
  std::memcpy(&value, data, sizeof value);  // little-endian on every machine this is built for
  return value;
}

std::uint32_t narrow(std::size_t value) {
  return static_cast<std::uint32_t>(value);
}

// block_count when the name is none of ours.
std::size_t block_named(const std::uint8_t* name) {
  std::size_t index = 0;
  while (index < block_count) {
    const std::size_t length = std::strlen(block_names[index]) + 1;  // its NUL too; at most 16
    if (std::memcmp(name, block_names[index], length) == 0) {
      break;
    }
    ++index;
  }
  return index;
}

// Commands and weights alone may lie outside of the payload.
Result fetch_external(std::size_t index, std::size_t offset, const BlockSource& source, View& view) {
  char key[key_bytes + 1] = {};
  if (view.size == key_bytes) {
    std::memcpy(key, view.data, key_bytes);
  }
  std::size_t size = 0;
  if (index > Block::weights || view.size != key_bytes || source.find == nullptr ||
      !source.find(source.context, key, view.data, size) || size > 0xFFFFFFFFu) {
    return {Code::payload_external_block, narrow(offset)};
  }
  view.size = narrow(size);
  return {};
}

Result split_blocks(const std::uint8_t* data, std::size_t size, const BlockSource& source,
                    View (&views)[block_count]) {
  std::uint32_t seen = 0;
  std::size_t offset = 0;
  while ((seen & (1U << Block::end)) == 0) {
    if (size - offset < header_bytes) {
      return {Code::payload_no_end, narrow(offset), narrow(size)};
    }
    const std::uint8_t* header = data + offset;
    const std::size_t index = block_named(header);
    if (index == block_count || (seen == 0 && index != Block::begin)) {
      return {Code::payload_unknown_block, narrow(offset)};
    }
    if ((seen & (1U << index)) != 0) {
      return {Code::payload_block_repeated, narrow(offset)};
    }
    const std::uint8_t external = header[external_at];
    const std::uint32_t bytes = word_at(header + size_at);
    offset += header_bytes;
    const std::uint64_t padded = (std::uint64_t{bytes} + name_bytes - 1) / name_bytes * name_bytes;
    if (padded > size - offset) {
      return {Code::payload_truncated, narrow(offset), narrow(size)};
    }
    views[index] = {data + offset, bytes};
    if (external > 1) {
      return {Code::payload_external_block, narrow(offset)};
    }
    if (external == 1) {
      if (const Result result = fetch_external(index, offset, source, views[index]); !result.ok()) {
        return result;
      }
    }
    offset += static_cast<std::size_t>(padded);
    seen |= 1U << index;
  }
  return seen == all_blocks ? Result{} : Result{Code::payload_block_missing, seen, all_blocks};
}

Result parse_actions(View list, Payload& payload) {
  const std::uint32_t words = list.size / 4;
  const auto word = [&](std::uint32_t index) { return word_at(list.data + 4 * std::size_t{index}); };
  if (list.size % 4 != 0 || words == 0) {
    return {Code::payload_bad_size, list.size, 4};
  }
  if (word(0) != cop1) {
    return {Code::payload_not_cop1, word(0), cop1};
  }
  bool configured = false;
  std::uint32_t index = 1;
  while (index < words) {
    const std::uint32_t action = word(index);
    const std::uint32_t kind = action & 0xFF;
    const std::uint32_t left = words - index - 1;
    if (kind == action_config && left >= 2 && !configured) {
      payload.config_word = word(index + 1);
      payload.arch_word = word(index + 2);
      configured = true;
      index += 3;
    } else if (kind == action_nop) {
      index += 1;
    } else if (kind == action_command_stream && payload.command_stream == nullptr) {
      const std::uint32_t length = (action >> 16) | ((action & 0xFF00) << 8);
      if (length == 0 || length != left) {
        return {Code::payload_bad_size, length * 4, left * 4};
      }
      payload.command_stream = list.data + 4 * std::size_t{index + 1};
      payload.command_bytes = length * 4;
      index += 1 + length;
    } else {
      return {Code::payload_unknown_action, action, index};
    }
  }
  return configured && payload.command_stream != nullptr ? Result{}
                                                         : Result{Code::payload_bad_size, list.size, 4};
}

Result parse_slots(View view, std::uint32_t scratch_bytes, SlotTable& table) {
  if (view.size < 4) {
    return {Code::payload_bad_size, view.size, 4};
  }
  const std::uint32_t count = word_at(view.data);
  const std::uint64_t needed = 4 + std::uint64_t{count} * slot_words * 4;
  if (needed != view.size) {
    return {Code::payload_bad_size, view.size, static_cast<std::uint32_t>(needed)};
  }
  table = {view.data + 4, count};
  for (std::uint32_t slot = 0; slot < count; ++slot) {
    const std::uint8_t* entry = table.entries + std::size_t{slot} * slot_words * 4;
    std::uint64_t bytes = 1;
    for (std::uint32_t i = 0; i <= shape_words; ++i) {  // the element size follows the shape
      const std::uint32_t factor = word_at(entry + 4 * std::size_t{i});
      bytes *= factor;
      if (factor == 0 || bytes > scratch_bytes) {
        return {Code::payload_bad_slot, slot, i};
      }
    }
    const Slot found = table.at(slot);
    if (found.region != scratch_region || found.offset > scratch_bytes - found.bytes) {
      return {Code::payload_bad_slot, slot, found.region != scratch_region ? 8U : 7U};
    }
  }
  return {};
}

Result check_alignment(const std::uint8_t* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return address % payload_alignment == 0
             ? Result{}
             : Result{Code::payload_misaligned, narrow(address), narrow(payload_alignment)};
}

}  // namespace

Slot SlotTable::at(std::uint32_t index) const {
  const std::uint8_t* entry = entries + std::size_t{index} * slot_words * 4;
  std::uint32_t bytes = 1;
  for (std::size_t i = 0; i <= shape_words; ++i) {
    bytes *= word_at(entry + 4 * i);
  }
  return {word_at(entry + 28), bytes, word_at(entry + 32)};
}

Result parse_payload(const std::uint8_t* data, std::size_t size, Payload& payload,
                     const BlockSource& source) {
  payload = {};
  View views[block_count];
  if (const Result result = split_blocks(data, size, source, views); !result.ok()) {
    return result;
  }
  if (const Result result = parse_actions(views[Block::command], payload); !result.ok()) {
    return result;
  }
  if (views[Block::scratch].size != 4) {
    return {Code::payload_bad_size, views[Block::scratch].size, 4};
  }
  payload.scratch_bytes = word_at(views[Block::scratch].data);
  payload.weights = views[Block::weights].data;
  payload.weight_bytes = views[Block::weights].size;
  if (const Result result = parse_slots(views[Block::inputs], payload.scratch_bytes, payload.inputs);
      !result.ok()) {
    return result;
  }
  if (const Result result = parse_slots(views[Block::outputs], payload.scratch_bytes, payload.outputs);
      !result.ok()) {
    return result;
  }
  if (const Result result = check_alignment(payload.command_stream); !result.ok()) {
    return result;
  }
  return check_alignment(payload.weights);
}

}  // namespace ethosu_sdk::npu
