// Numbers as text, CRC-32 and SHA-256 against published values.
#include "base/text.hpp"

#include <cstdint>
#include <string>

#include "app/crc32.hpp"
#include "app/log.hpp"
#include "app/sha256.hpp"
#include "board/host/doubles.hpp"
#include "tests/support/check.hpp"

namespace {

using namespace ethosu_sdk;

template <typename... Pieces>
std::string written(const Pieces&... pieces) {
  Text<128> text;
  write_all(text, pieces...);
  return text.c_str();
}

std::string sha256(const std::string& data) {
  char hex[app::sha256_hex_size];
  app::sha256_hex(reinterpret_cast<const std::uint8_t*>(data.data()), data.size(), hex);
  return hex;
}

void test_numbers() {
  CHECK(written(0, " ", 10U, " ", UINT64_MAX) == "0 10 18446744073709551615");
  CHECK(written(INT32_MIN, " ", INT64_MIN) == "-2147483648 -9223372036854775808");
  CHECK(written(Hex{0xDEADBEEF}, Hex{1}) == "0xdeadbeef0x00000001");
  Text<4> small;
  write_all(small, "abcdef");
  CHECK(std::string(small.c_str()) == "abc");
}

void test_log_line() {
  host::take_uart();
  ETHOSU_LOG_INFO("Method '", "forward", "' loaded.");
  const std::string line = host::take_uart();
  CHECK(line.rfind("I [executorch:text_test.cpp:", 0) == 0);
  CHECK(line.find(" test_log_line()] Method 'forward' loaded.\n") != std::string::npos);
}

// The check value of CRC-32/ISO-HDLC; the examples of FIPS 180-4 and its block boundaries.
void test_digests() {
  const std::string check = "123456789";
  CHECK(app::crc32(reinterpret_cast<const std::uint8_t*>(check.data()), check.size()) == 0xCBF43926);
  CHECK(app::crc32(nullptr, 0) == 0);
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace

int main() {
  test_numbers();
  test_log_line();
  test_digests();
  return host::failed_checks == 0 ? 0 : 1;
}
