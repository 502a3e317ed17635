#include "app/resident/host_files.hpp"

#include <cstring>

#include "app/crc32.hpp"
#include "app/log.hpp"
#include "app/protocol.hpp"
#include "hal/semihosting.hpp"

namespace ethosu_sdk::app {
namespace {

constexpr char no_inputs[] = "inputs";

// An open file of the host, closed at the end of its scope.
class File {
 public:
  File(const char* name, hal::FileMode mode) : handle_(hal::file_open(name, mode)) {}
  ~File() {
    if (handle_ >= 0) {
      hal::file_close(handle_);
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return handle_ >= 0; }
  hal::FileHandle handle() const { return handle_; }
  // Buffered output may fail as late as here.
  bool close() {
    const hal::FileHandle handle = handle_;
    handle_ = -1;
    return hal::file_close(handle);
  }

 private:
  hal::FileHandle handle_;
};

bool measure(const char* stage, const char* name, std::size_t& bytes, Failure& failure) {
  const File file(name, hal::FileMode::read);
  if (!file.is_open()) {
    return failure.say(stage, "no_file", "the host does not open '", name, "'");
  }
  const std::int32_t size = hal::file_size(file.handle());
  if (size < 0) {
    return failure.say(stage, "no_file", "the host does not tell the size of '", name, "'");
  }
  bytes = static_cast<std::size_t>(size);
  return true;
}

bool read_whole(const char* stage, const char* name, Span<std::uint8_t> memory, Failure& failure) {
  const File file(name, hal::FileMode::read);
  if (!file.is_open() || hal::file_size(file.handle()) != static_cast<std::int32_t>(memory.size()) ||
      !hal::file_read(file.handle(), memory.data(), memory.size())) {
    return failure.say(stage, "no_file", "the host does not give all of '", name, "'");
  }
  return true;
}

constexpr std::size_t aligned(std::size_t size) {
  constexpr std::size_t step = protocol::input_image_alignment;
  return (size + step - 1) / step * step;
}

// An input image that is written piece by piece.
class ImageWriter {
 public:
  ImageWriter(Span<std::uint8_t> pool, std::uint32_t inputs)
      : pool_(pool),
        end_(aligned(protocol::input_image_header_bytes +
                     protocol::input_image_reference_bytes * std::size_t{inputs})) {}

  bool fits(std::size_t bytes) const { return end_ <= pool_.size() && bytes <= pool_.size() - end_; }
  // Room for input `index`, which fits.
  Span<std::uint8_t> place(std::uint32_t index, std::size_t bytes) {
    const Span<std::uint8_t> room{pool_.data() + end_, bytes};
    const std::size_t entry =
        protocol::input_image_header_bytes + protocol::input_image_reference_bytes * std::size_t{index};
    put(entry, end_);
    put(entry + 4, bytes);
    end_ = aligned(end_ + bytes);
    return room;
  }
  // One set of inputs, one repeat, the driver's choice of events.
  void finish(std::uint32_t inputs) {
    constexpr std::size_t covered_at = protocol::input_image_crc_covers_from;
    const std::size_t bytes = end_ < pool_.size() ? end_ : pool_.size();
    std::memset(pool_.data() + covered_at, 0, protocol::input_image_header_bytes - covered_at);
    put(protocol::input_image_sets_at, 1);
    put(protocol::input_image_inputs_at, inputs);
    put(protocol::input_image_repeats_at, 1);
    put(protocol::input_image_magic_at, protocol::input_image_magic);
    put(protocol::input_image_version_at, protocol::input_image_version);
    put(protocol::input_image_bytes_at, bytes);
    put(protocol::input_image_crc_at, crc32(pool_.data() + covered_at, bytes - covered_at));
  }

 private:
  void put(std::size_t offset, std::size_t value) {
    const auto word = static_cast<std::uint32_t>(value);
    std::memcpy(pool_.data() + offset, &word, sizeof word);
  }

  Span<std::uint8_t> pool_;
  std::size_t end_;
};

constexpr bool may_be_scalar(std::size_t bytes) {
  return bytes == 1 || bytes == 8;
}

}  // namespace

bool HostFiles::read_program(Span<std::uint8_t> memory, Span<const std::uint8_t>& program, Failure& failure) {
  std::size_t bytes = 0;
  if (!measure("program", line_.model, bytes, failure)) {
    return false;
  }
  if (bytes > memory.size()) {
    return failure.say("program", "too_large", "'", line_.model, "' has ", bytes,
                       " bytes, there is room for ", memory.size());
  }
  program = {memory.data(), bytes};
  return read_whole("program", line_.model, {memory.data(), bytes}, failure);
}

bool HostFiles::provide_inputs(const runtime::Method& method, Failure& failure) {
  const std::uint32_t count = method.input_count();
  if (count > CommandLine::max_inputs) {
    return failure.say(no_inputs, "too_many", count, " inputs, there is room for ", CommandLine::max_inputs);
  }
  for (std::uint32_t i = 0; i < line_.input_count; ++i) {
    if (!measure(no_inputs, line_.inputs[i], sizes_[i], failure)) {
      return false;
    }
  }
  std::size_t wanted[CommandLine::max_inputs] = {};
  std::uint32_t chosen[CommandLine::max_inputs] = {};
  for (std::uint32_t i = 0; i < count; ++i) {
    const Tensor* const tensor = method.input(i);
    wanted[i] = tensor == nullptr ? 0 : tensor->byte_count();
  }
  if (!match_files({wanted, count}, {sizes_, line_.input_count}, chosen, failure)) {
    return false;
  }
  ImageWriter image(input_pool_, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!image.fits(wanted[i])) {
      return failure.say(no_inputs, "too_large", "input ", i, " of ", wanted[i],
                         " bytes does not fit the input pool of ", input_pool_.size());
    }
    const Span<std::uint8_t> room = image.place(i, wanted[i]);
    if (wanted[i] == 0) {
      ETHOSU_LOG_INFO("Input ", i, " is not a tensor: the program keeps its own value.");
    } else if (!read_whole(no_inputs, line_.inputs[chosen[i]], room, failure)) {
      return false;
    } else {
      ETHOSU_LOG_INFO("Input ", i, " is ", line_.inputs[chosen[i]], ", ", wanted[i], " bytes.");
    }
  }
  image.finish(count);
  return true;
}

bool HostFiles::take_output(std::uint32_t index, Bytes bytes, Failure& failure) {
  if (line_.output == nullptr) {
    return true;
  }
  constexpr std::size_t longest = 256;
  Text<longest> name;
  write_all(name, line_.output, "-", index, ".bin");
  if (std::strlen(line_.output) + sizeof "-4294967295.bin" > longest) {
    return failure.say("outputs", "name_too_long", "'", line_.output, "'");
  }
  File file(name.c_str(), hal::FileMode::write);
  if (!file.is_open() || !hal::file_write(file.handle(), bytes.data(), bytes.size()) || !file.close()) {
    return failure.say("outputs", "not_written", "the host does not take '", name.c_str(), "'");
  }
  ETHOSU_LOG_INFO("Output ", index, " is ", name.c_str(), ", ", bytes.size(), " bytes.");
  return true;
}

bool match_files(Span<const std::size_t> wanted, Span<const std::size_t> files, std::uint32_t* chosen,
                 Failure& failure) {
  const bool one_each = files.size() == wanted.size();
  std::uint32_t file = 0;
  for (std::uint32_t input = 0; input < wanted.size(); ++input) {
    if (wanted[input] == 0) {
      chosen[input] = no_file;
      file += one_each || (file < files.size() && may_be_scalar(files[file])) ? 1 : 0;
      continue;
    }
    while (!one_each && file < files.size() && files[file] != wanted[input] && may_be_scalar(files[file])) {
      ++file;
    }
    if (file >= files.size()) {
      return failure.say("inputs", "missing", files.size(), " files for ", wanted.size(),
                         " inputs: none is left for input ", input);
    }
    if (files[file] != wanted[input]) {
      return failure.say("inputs", "wrong_size", "file ", file, " has ", files[file], " bytes, input ", input,
                         " takes ", wanted[input]);
    }
    chosen[input] = file++;
  }
  for (; file < files.size(); ++file) {
    if (!may_be_scalar(files[file])) {
      return failure.say("inputs", "too_many", "file ", file, " of ", files[file],
                         " bytes belongs to no input");
    }
  }
  return true;
}

}  // namespace ethosu_sdk::app
