// Data files: one built by hand, every truncation of it, every byte of its head and tables changed; and what
// a program gets from it.
#include "runtime/data_files.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "flat_tensor_generated.h"
#include "tests/runtime/session.hpp"
#include "tests/support/check.hpp"

namespace {

using namespace ethosu_sdk;
using namespace ethosu_sdk::host;
using runtime::DataFiles;
using runtime::NamedBlob;
namespace flat = ::flat_tensor_flatbuffer;

constexpr std::size_t header_at = 8;
constexpr std::size_t padded_header = 48;
constexpr std::size_t segments_bytes = 64;

struct Form {
  flat::ScalarType type = flat::ScalarType::FLOAT;
  std::vector<std::int32_t> sizes{4};
  std::vector<std::uint8_t> dim_order{0};
  std::uint64_t bytes = 16;
};

template <typename Number>
void put(std::vector<std::uint8_t>& bytes, std::size_t at, Number value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// "plain": 32 bytes without a layout; "tensor": of the given form, after them. Byte n of the segments is n.
std::vector<std::uint8_t> file_with(const Form& form) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector segments = {flat::CreateDataSegment(builder, 0, 32),
                                flat::CreateDataSegment(builder, 32, form.bytes)};
  const auto layout = flat::CreateTensorLayoutDirect(builder, form.type, &form.sizes, &form.dim_order);
  const std::vector rows = {flat::CreateNamedDataDirect(builder, "plain", 0),
                            flat::CreateNamedDataDirect(builder, "tensor", 1, layout)};
  flat::FinishFlatTensorBuffer(builder, flat::CreateFlatTensorDirect(builder, 0, &segments, &rows));
  std::vector<std::uint8_t> bytes(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
  std::uint32_t root;
  std::memcpy(&root, bytes.data(), sizeof root);
  bytes.insert(bytes.begin() + header_at, padded_header, 0);
  put(bytes, 0, static_cast<std::uint32_t>(root + padded_header));
  std::memcpy(bytes.data() + header_at, "FH01", 4);
  put(bytes, header_at + 4, std::uint32_t{40});
  put(bytes, header_at + 8, std::uint64_t{padded_header + header_at});
  put(bytes, header_at + 16, std::uint64_t{bytes.size() - padded_header - header_at});
  bytes.resize((bytes.size() + 15) / 16 * 16);
  put(bytes, header_at + 24, std::uint64_t{bytes.size()});
  put(bytes, header_at + 32, std::uint64_t{segments_bytes});
  for (std::size_t i = 0; i < segments_bytes; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(i));
  }
  return bytes;
}

// The bytes at an aligned address, with nothing behind them that belongs to this program.
struct Opened {
  explicit Opened(const std::vector<std::uint8_t>& content, std::size_t shift = 0)
      : memory(static_cast<std::uint8_t*>(std::aligned_alloc(16, (content.size() + shift + 15) / 16 * 16))) {
    std::copy(content.begin(), content.end(), memory + shift);
    const Span<const std::uint8_t> file[] = {{memory + shift, content.size()}};
    status = files.open({file, 1}, reason);
  }
  ~Opened() { std::free(memory); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  std::uint8_t* memory;
  DataFiles files;
  ErrorText reason;
  Status status;
};

void test_good() {
  Opened opened(file_with({}));
  NamedBlob blob;
  CHECK(opened.status == Status::ok);
  CHECK(opened.files.find("plain", blob) && blob.bytes.size() == 32 && !blob.has_layout);
  CHECK(opened.files.find("tensor", blob) && blob.bytes.size() == 16 && blob.bytes[0] == 32);
  CHECK(blob.has_layout && blob.sizes.size() == 1 && blob.sizes[0] == 4 && blob.dim_order[0] == 0);
  CHECK(!opened.files.find("tenso", blob) && !opened.files.find("", blob));
}

void test_every_truncation() {
  const std::vector<std::uint8_t> whole = file_with({});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK(Opened({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}).status != Status::ok);
  }
}

// What is not refused is read within the file: the sanitizers watch.
void test_every_changed_byte() {
  const std::vector<std::uint8_t> whole = file_with({});
  unsigned refused = 0;
  for (std::size_t at = 0; at < whole.size() - segments_bytes; ++at) {
    for (const unsigned value : {0u, 1u, 0x7Fu, 0x80u, 0xFFu}) {
      std::vector<std::uint8_t> changed = whole;
      changed[at] = static_cast<std::uint8_t>(value);
      const Opened opened(changed);
      refused += opened.status != Status::ok;
      unsigned sum = 0;
      for (const char* key : {"plain", "tensor"}) {
        NamedBlob blob;
        if (opened.files.find(key, blob)) {
          for (const std::uint8_t byte : blob.bytes) {
            sum += byte;
          }
          for (const std::int32_t size : blob.sizes) {
            sum += static_cast<unsigned>(size);
          }
        }
      }
      CHECK(sum != 0xFFFFFFFF);
    }
  }
  CHECK(refused > 200);
}

void test_hostile_header() {
  constexpr std::uint64_t far = ~std::uint64_t{15};
  for (const std::size_t at : {std::size_t{8}, std::size_t{16}, std::size_t{24}, std::size_t{32}}) {
    for (const std::uint64_t value : {far, std::uint64_t{1} << 32, std::uint64_t{1} << 63}) {
      std::vector<std::uint8_t> changed = file_with({});
      put(changed, header_at + at, value);
      CHECK(Opened(changed).status == Status::bad_program);
    }
  }
  CHECK(Opened(file_with({}), 4).status == Status::invalid_argument);
}

void test_many_files() {
  const std::vector<std::uint8_t> whole = file_with({});
  std::vector<Memory> memory(DataFiles::max_files + 1);
  std::vector<Span<const std::uint8_t>> files;
  for (Memory& row : memory) {
    std::memcpy(row.bytes, whole.data(), whole.size());
    files.push_back({row.bytes, whole.size()});
  }
  DataFiles opened;
  ErrorText reason;
  CHECK(whole.size() <= sizeof(Memory));
  CHECK(opened.open({files.data(), DataFiles::max_files}, reason) == Status::ok);
  CHECK(opened.open({files.data(), files.size()}, reason) == Status::out_of_memory);
}

Status loaded_with(const DataFiles* data, const char* name) {
  ProgramBuilder builder;
  TensorRow row;
  row.memory_id = 0;
  row.location = schema::TensorDataLocation::EXTERNAL;
  row.name = name;
  builder.inputs = {builder.tensor(row)};
  Session session(builder);
  session.data = data;
  const Status status = session.load();
  if (status == Status::ok) {
    const Tensor& tensor = *session.method.input(0);
    CHECK(tensor.constant && tensor.as<const std::uint8_t>()[0] == 32);
  }
  return status;
}

// The program's tensor: four floats.
void test_tensors_of_a_program() {
  const Opened good(file_with({}));
  CHECK(loaded_with(&good.files, "tensor") == Status::ok);
  CHECK(loaded_with(&good.files, "none") == Status::unsupported_program);
  CHECK(loaded_with(nullptr, "tensor") == Status::unsupported_program);
  Form others[4];
  others[0].type = flat::ScalarType::INT;
  others[1].sizes = {2, 2};
  others[1].dim_order = {0, 1};
  others[2].sizes = {5};
  others[3].bytes = 32;
  for (const Form& form : others) {
    const Opened other(file_with(form));
    CHECK(other.status == Status::ok);
    CHECK(loaded_with(&other.files, "tensor") == Status::bad_program);
  }
}

}  // namespace

int main() {
  test_good();
  test_every_truncation();
  test_every_changed_byte();
  test_hostile_header();
  test_many_files();
  test_tensors_of_a_program();
  return failed_checks == 0 ? 0 : 1;
}
