// Loads and executes a program over and over, each time damaged in another way.
//
//   runtime_damage_test MODEL.pte PLANNED_BYTES CASES SEED
//
// Damage is a bit, a byte or a word of the file's first 4 KiB, where its structure lies, and sometimes
// several of them. Whatever it is, the runtime must end in a result or in a named error with a reason, and
// soon: the rest is the sanitizers' to find. Prints how often each status came, first by load and then by
// execute.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "runtime/method.hpp"
#include "tests/runtime/all_kernels.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace {

using namespace ethosu_sdk;

constexpr std::size_t damaged_bytes = 4096;
constexpr std::size_t pool_bytes = 1u << 20;
constexpr double limit_s = 20;  // an endless loop, even on a busy machine

unsigned long current_case = 0;

// Memory to the byte, aligned as the runtime asks for.
class Block {
 public:
  explicit Block(std::size_t size) : size_(size) {
    void* memory = nullptr;
    if (posix_memalign(&memory, runtime::memory_alignment, std::max<std::size_t>(size, 1)) != 0) {
      std::abort();
    }
    memory_ = static_cast<std::uint8_t*>(memory);
    std::fill_n(memory_, size, std::uint8_t{0xA5});
  }
  ~Block() { std::free(memory_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Span<std::uint8_t> bytes() const { return {memory_, size_}; }

 private:
  std::uint8_t* memory_;
  std::size_t size_;
};

// Accepts all and writes where the NPU would.
class Delegate final : public runtime::Delegate {
 public:
  Status init(std::uint32_t, Span<const std::uint8_t>, const runtime::NamedBlobs&) override {
    return Status::ok;
  }
  Status execute(std::uint32_t, std::uint32_t, Span<Value* const> arguments) override {
    for (const Value* value : arguments) {
      if (value->is(ValueKind::tensor) && !value->tensor->constant && value->tensor->data != nullptr) {
        std::memset(value->tensor->data, 1, value->tensor->byte_count());
      }
    }
    return Status::ok;
  }
};

class Damage {
 public:
  explicit Damage(unsigned seed) : random_(seed) {}

  void apply(std::vector<std::uint8_t>& file) {
    const unsigned places = below(4) == 0 ? 1 + below(6) : 1;
    for (unsigned i = 0; i < places; ++i) {
      apply_once(file);
    }
  }

 private:
  unsigned below(std::size_t count) { return static_cast<unsigned>(random_() % count); }

  void apply_once(std::vector<std::uint8_t>& file) {
    constexpr std::uint32_t words[] = {0, 1, 2, 16, 64, 0x100, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
    const std::size_t place = below(std::min(file.size(), damaged_bytes));
    switch (below(4)) {
      case 0:
        file[place] = static_cast<std::uint8_t>(file[place] ^ 1u << below(8));
        break;
      case 1:
        file[place] = static_cast<std::uint8_t>(~file[place]);
        break;
      case 2:
        file[place] = static_cast<std::uint8_t>(below(256));
        break;
      default:
        std::memcpy(file.data() + std::min(place / 4 * 4, file.size() - 4), &words[below(std::size(words))],
                    4);
        break;
    }
  }

  std::mt19937 random_;
};

std::string run(const std::vector<std::uint8_t>& file, std::size_t planned_bytes, const Block& pool) {
  const Block model(file.size());
  std::copy(file.begin(), file.end(), model.bytes().data());
  const Block planned(planned_bytes);
  const Span<std::uint8_t> arenas[] = {planned.bytes()};
  Delegate delegate;
  runtime::Method method;
  std::string stage = "load ";
  Status status =
      method.load(model.bytes(), "forward", {pool.bytes(), {arenas, 1}}, host::all_kernels(), &delegate);
  for (int repeat = 0; repeat < 2 && status == Status::ok; ++repeat) {
    stage = "execute ";
    status = method.execute(nullptr);
  }
  const bool has_reason = *method.error_text() != '\0';
  return stage + status_name(status) + (has_reason == (status == Status::ok) ? " WITHOUT REASON" : "");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::fprintf(stderr, "usage: runtime_damage_test MODEL.pte PLANNED_BYTES CASES SEED\n");
    return 2;
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback([] { std::fprintf(stderr, "in case %lu\n", current_case); });
#endif
  std::ifstream stream(arguments[1], std::ios::binary);
  const std::vector<char> content{std::istreambuf_iterator<char>(stream), {}};
  const std::vector<std::uint8_t> original(content.begin(), content.end());
  if (original.size() < 4) {
    std::fprintf(stderr, "runtime_damage_test: cannot read %s\n", arguments[1]);
    return 2;
  }
  const std::size_t planned_bytes = std::strtoull(arguments[2], nullptr, 10);
  const unsigned long cases = std::strtoul(arguments[3], nullptr, 10);
  Damage damage(static_cast<unsigned>(std::strtoul(arguments[4], nullptr, 10)));
  const Block pool(pool_bytes);
  std::map<std::string, unsigned long> outcomes;
  for (current_case = 0; current_case < cases; ++current_case) {
    std::vector<std::uint8_t> file = original;
    damage.apply(file);
    const auto start = std::chrono::steady_clock::now();
    std::string outcome = run(file, planned_bytes, pool);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    ++outcomes[seconds.count() > limit_s ? outcome + " TOO LATE" : outcome];
  }
  for (const auto& [outcome, times] : outcomes) {
    std::printf("%lu %s\n", times, outcome.c_str());
  }
  return 0;
}
