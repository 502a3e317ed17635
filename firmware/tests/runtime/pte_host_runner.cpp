// Runs a .pte on this machine with the firmware's runtime and kernels.
//
//   pte_host_runner MODEL.pte METHOD REPEATS PLANNED OUTPUT_PREFIX INPUT...
//
// PLANNED lists the bytes of the planned buffers, such as 112,80 or -. Each INPUT is a file of raw bytes, or
// - for an input to leave as it is. All memory is allocated to the byte, so that a sanitizer sees every step
// beside it. Writes OUTPUT_PREFIX<n>.bin and prints a line for each instruction and output (dtype, then each
// dimension's size:dim_order), then "status NAME: reason". Exit status: 0 ok, 1 any other status, 2 a mistake
// of the caller.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "runtime/method.hpp"
#include "tests/runtime/all_kernels.hpp"
#include "tests/runtime/recording_delegate.hpp"

namespace ethosu_sdk::host {
namespace {

constexpr std::size_t method_pool_bytes = 1u << 20;

struct Free {
  void operator()(std::uint8_t* memory) const { std::free(memory); }
};

class Block {
 public:
  explicit Block(std::size_t size) : size_(size) {
    void* memory = nullptr;
    if (posix_memalign(&memory, runtime::memory_alignment, size == 0 ? 1 : size) != 0) {
      std::abort();
    }
    // Not zero: nothing may rely on it.
    std::memset(memory, 0xA5, size);
    memory_.reset(static_cast<std::uint8_t*>(memory));
  }
  Span<std::uint8_t> bytes() const { return {memory_.get(), size_}; }

 private:
  std::unique_ptr<std::uint8_t, Free> memory_;
  std::size_t size_;
};

[[noreturn]] void misuse(const char* what, const char* detail) {
  std::fprintf(stderr, "pte_host_runner: %s: %s\n", what, detail);
  std::exit(2);
}

Block read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    misuse("cannot read", path);
  }
  const std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
  Block block(content.size());
  std::copy(content.begin(), content.end(), block.bytes().data());
  return block;
}

std::vector<Block> planned_buffers(const char* sizes) {
  std::vector<Block> blocks;
  while (*sizes != '\0' && *sizes != '-') {
    char* end = nullptr;
    blocks.emplace_back(std::strtoull(sizes, &end, 10));
    sizes = *end == ',' ? end + 1 : end;
  }
  return blocks;
}

class Printer final : public runtime::InstructionObserver {
 public:
  void on_instruction(std::uint32_t index, const char* kind, const char* name) override {
    if (printed_++ < limit) {
      std::printf("instruction %" PRIu32 " %s %s\n", index, kind, name);
    }
  }

 private:
  static constexpr unsigned limit = 4096;  // a damaged program may execute a million
  unsigned printed_ = 0;
};

int finish(const runtime::Method& method, Status status, const char* stage) {
  std::printf("status %s: %s%s%s\n", status_name(status), stage, *method.error_text() == '\0' ? "" : ": ",
              method.error_text());
  return status == Status::ok ? 0 : 1;
}

// False: the program's inputs are not those that the caller has.
bool set_inputs(const runtime::Method& method, const char* const* paths, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (std::strcmp(paths[i], "-") == 0) {
      continue;
    }
    const Tensor* const tensor = method.input(i);
    const Block file = read_file(paths[i]);
    if (tensor == nullptr || tensor->data == nullptr || tensor->constant ||
        tensor->byte_count() != file.bytes().size()) {
      std::printf("input %" PRIu32 " takes no %zu bytes\n", i, file.bytes().size());
      return false;
    }
    std::copy(file.bytes().begin(), file.bytes().end(), tensor->as<std::uint8_t>());
  }
  return true;
}

void write_outputs(const runtime::Method& method, const std::string& prefix) {
  for (std::uint32_t i = 0; i < method.output_count(); ++i) {
    const Tensor* const tensor = method.output(i);
    if (tensor == nullptr) {
      std::printf("output %" PRIu32 " %s\n", i, value_kind_name(method.output_value(i)->kind));
      continue;
    }
    std::printf("output %" PRIu32 " %s", i, scalar_type_name(tensor->dtype));
    for (std::size_t dim = 0; dim < tensor->rank; ++dim) {
      std::printf(" %" PRId32 ":%u", tensor->sizes[dim], static_cast<unsigned>(tensor->dim_order[dim]));
    }
    std::printf("\n");
    std::ofstream file(prefix + std::to_string(i) + ".bin", std::ios::binary);
    if (tensor->data != nullptr) {
      file.write(tensor->as<const char>(), static_cast<std::streamsize>(tensor->byte_count()));
    }
  }
}

// Memory for the inputs and outputs that the program plans none for.
std::vector<Block> bind_free_tensors(runtime::Method& method) {
  std::vector<Block> blocks;
  for (std::uint32_t i = 0; i < method.input_count() + method.output_count(); ++i) {
    Tensor* const tensor =
        i < method.input_count() ? method.input(i) : method.output(i - method.input_count());
    if (tensor != nullptr && tensor->data == nullptr) {
      blocks.emplace_back(tensor->byte_count());
      method.bind(*tensor, blocks.back().bytes());
    }
  }
  return blocks;
}

int run(int count, char** arguments) {
  const Block model = read_file(arguments[1]);
  const Block pool(method_pool_bytes);
  const std::vector<Block> planned = planned_buffers(arguments[4]);
  std::vector<Span<std::uint8_t>> planned_spans;
  for (const Block& block : planned) {
    planned_spans.push_back(block.bytes());
  }
  RecordingDelegate delegate;
  runtime::Method method;
  Status status =
      method.load(model.bytes(), arguments[2], {pool.bytes(), {planned_spans.data(), planned_spans.size()}},
                  all_kernels(), &delegate);
  if (status != Status::ok) {
    return finish(method, status, "load");
  }
  std::printf("pool %zu\n", method.pool_used());
  const std::vector<Block> free_tensors = bind_free_tensors(method);
  Printer printer;
  for (long repeat = std::strtol(arguments[3], nullptr, 10); repeat > 0; --repeat) {
    if (!set_inputs(method, arguments + 6, static_cast<std::uint32_t>(count - 6))) {
      return finish(method, Status::shape_mismatch, "input");
    }
    status = method.execute(repeat == 1 ? &printer : nullptr);
    if (status != Status::ok) {
      return finish(method, status, "execute");
    }
  }
  write_outputs(method, arguments[5]);
  return finish(method, status, "done");
}

}  // namespace
}  // namespace ethosu_sdk::host

int main(int count, char** arguments) {
  if (count < 6) {
    ethosu_sdk::host::misuse("usage", "MODEL.pte METHOD REPEATS PLANNED OUTPUT_PREFIX INPUT...");
  }
  return ethosu_sdk::host::run(count, arguments);
}
