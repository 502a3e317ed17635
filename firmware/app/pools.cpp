#include "app/pools.hpp"

#include <cstddef>
#include <cstdint>

#include "model_config.hpp"

// ".bss" makes the compiler reserve the pools without storing zeros; linker.ld takes each by its name.
#define ETHOSU_POOL(name) __attribute__((section(".bss.pool." name))) alignas(16)

namespace {

namespace config = ethosu_sdk::model_config;

constexpr std::size_t at_least_one(std::size_t size) {
  return size == 0 ? 1 : size;  // C++ has no arrays of no elements
}

}  // namespace

extern "C" {
extern const std::uint8_t ethosu_model_begin[], ethosu_model_end[];  // model.S
// data_files.S: where each data file begins and ends.
extern const std::uint8_t* const ethosu_data_files[][2];

// The host finds this pool by its name and lays the input image there before the run.
ETHOSU_POOL("input_image") std::uint8_t input_image[config::input_image_bytes];
}

namespace ethosu_sdk::app {
namespace {

ETHOSU_POOL("scratch") std::uint8_t scratch[at_least_one(config::scratch_bytes)];
ETHOSU_POOL("fast_scratch") std::uint8_t fast_scratch[at_least_one(config::fast_scratch_bytes)];
ETHOSU_POOL("planned") std::uint8_t planned[at_least_one(config::planned_pool_bytes)];
ETHOSU_POOL("method") std::uint8_t method_pool[at_least_one(config::method_pool_bytes)];

Span<std::uint8_t> planned_buffers[at_least_one(config::planned_count)];
npu::Payload payloads[at_least_one(config::delegate_count)];
MethodSetup methods[config::method_count];
Span<const std::uint8_t> data[at_least_one(config::data_file_count)];
static_assert(config::data_file_count <= runtime::DataFiles::max_files);

}  // namespace

Span<const std::uint8_t> embedded_model() {
  return {ethosu_model_begin, static_cast<std::size_t>(ethosu_model_end - ethosu_model_begin)};
}

Span<const Span<const std::uint8_t>> data_files() {
  for (std::size_t i = 0; i < config::data_file_count; ++i) {
    const std::uint8_t* const* const row = ethosu_data_files[i];
    data[i] = {row[0], static_cast<std::size_t>(row[1] - row[0])};
  }
  return {data, config::data_file_count};
}

// A pool of no bytes is not referenced, and so not linked.
Span<std::uint8_t> scratch_pool() {
  return {config::scratch_bytes == 0 ? nullptr : scratch, config::scratch_bytes};
}

Span<std::uint8_t> fast_scratch_pool() {
  return {config::fast_scratch_bytes == 0 ? nullptr : fast_scratch, config::fast_scratch_bytes};
}

Span<const MethodSetup> method_setups() {
  std::size_t pool_at = 0, buffers = 0, delegates = 0;
  for (std::size_t i = 0; i < config::method_count; ++i) {
    const config::Method& method = config::methods[i];
    for (std::size_t k = 0; k < method.planned_count; ++k) {
      const config::Buffer& buffer = config::planned[buffers + k];
      planned_buffers[buffers + k] = {planned + buffer.offset, buffer.bytes};
    }
    methods[i] = {
        method.name,
        {{method_pool + pool_at, method.pool_bytes}, {planned_buffers + buffers, method.planned_count}},
        {payloads + delegates, method.delegates}};
    pool_at += method.pool_bytes;
    buffers += method.planned_count;
    delegates += method.delegates;
  }
  return {methods, config::method_count};
}

Span<std::uint8_t> input_image_pool() {
  return {input_image, config::input_image_bytes};
}

}  // namespace ethosu_sdk::app
