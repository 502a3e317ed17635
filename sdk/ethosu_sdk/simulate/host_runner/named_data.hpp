// The data files (.ptd) of a program, and blocks of Ethos-U payloads that lie in them. ExecuTorch's own code
// reads the files and finds what is in them.
#pragma once

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#include <executorch/extension/named_data_map/merged_data_map.h>
#include <executorch/runtime/core/named_data_map.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using Blob = std::vector<std::uint8_t>;

inline std::vector<char> content_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class DataFiles {
 public:
  executorch::runtime::Error load(const std::vector<std::string>& paths) {
    std::vector<const executorch::runtime::NamedDataMap*> maps;
    for (const std::string& path : paths) {
      auto file = std::make_unique<File>(content_of(path));
      auto map = executorch::extension::FlatTensorDataMap::load(&file->loader);
      if (!map.ok()) return map.error();
      file->map = std::make_unique<executorch::extension::FlatTensorDataMap>(std::move(*map));
      maps.push_back(file->map.get());
      files_.push_back(std::move(file));
    }
    if (maps.empty()) return executorch::runtime::Error::Ok;
    auto merged = Merged::load({maps.data(), maps.size()});
    if (!merged.ok()) return merged.error();
    merged_ = std::make_unique<Merged>(std::move(*merged));
    return executorch::runtime::Error::Ok;
  }

  // nullptr: there are no files.
  const executorch::runtime::NamedDataMap* map() const { return merged_.get(); }

 private:
  using Merged = executorch::extension::merged_data_map::MergedDataMap;

  struct File {
    explicit File(std::vector<char> bytes)
        : content(std::move(bytes)), loader(content.data(), content.size()) {}

    std::vector<char> content;
    executorch::extension::BufferDataLoader loader;
    std::unique_ptr<executorch::extension::FlatTensorDataMap> map;
  };

  std::vector<std::unique_ptr<File>> files_;
  std::unique_ptr<Merged> merged_;
};

// The payload with all of its blocks inside. A block is a header of 32 bytes (name, u32 size, u8 external)
// and its data, padded to 16 bytes; the data of an external one is its key in `map`.
inline executorch::runtime::Error with_external_blocks(const executorch::runtime::NamedDataMap* map,
                                                       const std::uint8_t* data, std::size_t size,
                                                       Blob& whole) {
  constexpr std::size_t header = 32, size_at = 16, external_at = 20, alignment = 16;
  for (std::size_t at = 0; at < size;) {
    std::uint32_t bytes = 0;
    if (size - at < header) return executorch::runtime::Error::InvalidProgram;
    std::memcpy(&bytes, data + at + size_at, sizeof bytes);
    const std::size_t padded = (std::size_t{bytes} + alignment - 1) / alignment * alignment;
    if (padded > size - at - header) return executorch::runtime::Error::InvalidProgram;
    Blob block(data + at, data + at + header);
    const std::uint8_t* const content = data + at + header;
    if (block[external_at] != 0) {
      if (map == nullptr) return executorch::runtime::Error::NotFound;
      const std::string key(content, content + bytes);  // MergedDataMap reads a view's data up to a zero
      auto found = map->get_data(key);
      if (!found.ok()) return found.error();
      const auto* const blob = static_cast<const std::uint8_t*>(found->data());
      const std::uint32_t blob_bytes = static_cast<std::uint32_t>(found->size());
      std::memcpy(block.data() + size_at, &blob_bytes, sizeof blob_bytes);
      block[external_at] = 0;
      block.insert(block.end(), blob, blob + blob_bytes);
      found->Free();
    } else {
      block.insert(block.end(), content, content + bytes);
    }
    block.resize((block.size() + alignment - 1) / alignment * alignment);
    whole.insert(whole.end(), block.begin(), block.end());
    at += header + padded;
  }
  return executorch::runtime::Error::Ok;
}
