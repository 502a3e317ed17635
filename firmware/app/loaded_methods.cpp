#include "app/loaded_methods.hpp"

#include <algorithm>

namespace ethosu_sdk::app {

void LoadedMethods::use(Span<const MethodSetup> setups, Span<const std::uint8_t> model,
                        Span<const runtime::KernelEntry> kernels) {
  setups_ = setups;
  model_ = model;
  kernels_ = kernels;
}

Status LoadedMethods::load(std::uint32_t index) {
  select(index);
  return current().load(model_, setup().name, setup().memory, kernels_, &delegate_, &data_);
}

void LoadedMethods::select(std::uint32_t index) {
  chosen_ = index;
  delegate_.use_payloads(setups_[index].payloads);
}

std::size_t LoadedMethods::delegates() const {
  std::size_t count = 0;
  for (const MethodSetup& row : setups_) {
    count += row.payloads.size();
  }
  return count;
}

std::uint32_t LoadedMethods::most_inputs() const {
  std::uint32_t most = 0;
  for (std::uint32_t i = 0; i < count(); ++i) {
    most = std::max(most, methods_[i].input_count());
  }
  return most;
}

std::size_t LoadedMethods::pool_used() const {
  std::size_t used = 0;
  for (std::uint32_t i = 0; i < count(); ++i) {
    used += methods_[i].pool_used();
  }
  return used;
}

std::size_t LoadedMethods::pool_bytes() const {
  std::size_t bytes = 0;
  for (const MethodSetup& row : setups_) {
    bytes += row.memory.method_pool.size();
  }
  return bytes;
}

}  // namespace ethosu_sdk::app
