// Semihosting on this machine: its own files, and a command line that tests set.
#include "hal/semihosting.hpp"

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "board/host/doubles.hpp"

namespace ethosu_sdk {
namespace {

std::string text_of_command_line;
std::map<hal::FileHandle, std::FILE*> open_files;

std::FILE* stream_of(hal::FileHandle file) {
  const auto found = open_files.find(file);
  return found == open_files.end() ? nullptr : found->second;
}

}  // namespace

void host::set_command_line(const std::string& text) {
  text_of_command_line = text;
}

bool hal::command_line(char* text, std::size_t capacity) {
  if (text_of_command_line.empty() || text_of_command_line.size() >= capacity) {
    return false;
  }
  std::memcpy(text, text_of_command_line.c_str(), text_of_command_line.size() + 1);
  return true;
}

hal::FileHandle hal::file_open(const char* name, FileMode mode) {
  std::FILE* const stream = std::fopen(name, mode == FileMode::read ? "rb" : "wb");
  if (stream == nullptr) {
    return -1;
  }
  static FileHandle last = 0;
  open_files[++last] = stream;
  return last;
}

std::int32_t hal::file_size(FileHandle file) {
  std::FILE* const stream = stream_of(file);
  if (stream == nullptr || std::fseek(stream, 0, SEEK_END) != 0) {
    return -1;
  }
  const long size = std::ftell(stream);
  return std::fseek(stream, 0, SEEK_SET) == 0 ? static_cast<std::int32_t>(size) : -1;
}

bool hal::file_read(FileHandle file, std::uint8_t* data, std::size_t size) {
  std::FILE* const stream = stream_of(file);
  return stream != nullptr && std::fread(data, 1, size, stream) == size;
}

bool hal::file_write(FileHandle file, const std::uint8_t* data, std::size_t size) {
  std::FILE* const stream = stream_of(file);
  return stream != nullptr && std::fwrite(data, 1, size, stream) == size;
}

bool hal::file_close(FileHandle file) {
  std::FILE* const stream = stream_of(file);
  open_files.erase(file);
  return stream != nullptr && std::fclose(stream) == 0;
}

}  // namespace ethosu_sdk
