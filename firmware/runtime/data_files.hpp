// Data files (.ptd): what a program refers to by name and does not hold itself. They are ExecuTorch 1.5.1's
// FlatTensor files (extension/flat_tensor of its headers), read in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/kernel_api.hpp"

namespace ethosu_sdk::runtime {

struct NamedBlob {
  Span<const std::uint8_t> bytes;
  // Of a tensor; a blob of another kind has no layout.
  bool has_layout = false;
  ScalarType dtype{};
  Span<const std::int32_t> sizes;
  Span<const std::uint8_t> dim_order;
};

class DataFiles {
 public:
  static constexpr std::size_t max_files = 8;

  // Checks every offset in the files, which start at addresses aligned to `memory_alignment` and outlive
  // this. The reason of a failure goes to `reason`.
  Status open(Span<const Span<const std::uint8_t>> files, ErrorText& reason);

  // Whether a file has data under `key`.
  bool find(const char* key, NamedBlob& blob) const;

 private:
  struct File {
    Span<const std::uint8_t> tables;
    Span<const std::uint8_t> segments;
  };

  static Status read_header(Span<const std::uint8_t> file, File& found, ErrorText& reason);
  static Status check_tables(const File& file, ErrorText& reason);

  File files_[max_files];
  std::size_t count_ = 0;
};

}  // namespace ethosu_sdk::runtime
