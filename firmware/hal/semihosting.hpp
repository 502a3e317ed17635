// Files and the command line of the host, by Arm semihosting (specification 3.0). Only under a simulator or
// debugger that offers it: elsewhere its breakpoint is a fault.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ethosu_sdk::hal {

// The command line that the host gives, the program's own name first; false when there is none, or when it is
// longer than `capacity` with its NUL.
bool command_line(char* text, std::size_t capacity);

enum class FileMode : std::uint8_t { read, write };  // write: made anew
using FileHandle = std::int32_t;

// Negative: the host does not open it. Relative names are meant in the folder that the host chose.
FileHandle file_open(const char* name, FileMode mode);
// In bytes; negative: the host does not say.
std::int32_t file_size(FileHandle file);
// All of `size` bytes, or false.
bool file_read(FileHandle file, std::uint8_t* data, std::size_t size);
bool file_write(FileHandle file, const std::uint8_t* data, std::size_t size);
bool file_close(FileHandle file);

}  // namespace ethosu_sdk::hal
