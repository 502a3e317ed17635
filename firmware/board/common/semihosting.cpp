#include "hal/semihosting.hpp"

#include <cstring>

#include "semihosting.hpp"

namespace ethosu_sdk::hal {
namespace {

// Arm semihosting specification 3.0.
constexpr std::uint32_t sys_open = 0x01;
constexpr std::uint32_t sys_close = 0x02;
constexpr std::uint32_t sys_write = 0x05;
constexpr std::uint32_t sys_read = 0x06;
constexpr std::uint32_t sys_flen = 0x0C;
constexpr std::uint32_t sys_get_cmdline = 0x15;
constexpr std::uint32_t mode_rb = 1;
constexpr std::uint32_t mode_wb = 5;

template <typename... Words>
std::uint32_t call(std::uint32_t operation, Words... words) {
  const std::uint32_t block[] = {static_cast<std::uint32_t>(words)...};
  return board::semihosting_call(operation, reinterpret_cast<std::uintptr_t>(block));
}

std::uint32_t address(const void* pointer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer));
}

}  // namespace

bool command_line(char* text, std::size_t capacity) {
  std::uint32_t block[] = {address(text), static_cast<std::uint32_t>(capacity)};
  text[0] = '\0';
  const std::uint32_t failed =
      board::semihosting_call(sys_get_cmdline, reinterpret_cast<std::uintptr_t>(block));
  return failed == 0 && std::memchr(text, '\0', capacity) != nullptr;
}

FileHandle file_open(const char* name, FileMode mode) {
  const std::uint32_t how = mode == FileMode::read ? mode_rb : mode_wb;
  return static_cast<FileHandle>(call(sys_open, address(name), how, std::strlen(name)));
}

std::int32_t file_size(FileHandle file) {
  return static_cast<std::int32_t>(call(sys_flen, file));
}

// The host answers with the number of bytes that are left over.
bool file_read(FileHandle file, std::uint8_t* data, std::size_t size) {
  return size == 0 || call(sys_read, file, address(data), size) == 0;
}

bool file_write(FileHandle file, const std::uint8_t* data, std::size_t size) {
  return size == 0 || call(sys_write, file, address(data), size) == 0;
}

bool file_close(FileHandle file) {
  return call(sys_close, file) == 0;
}

}  // namespace ethosu_sdk::hal
