// Every kernel takes as many arguments as the manifest names: called with none, it says how many it wants.
#include <cstdio>
#include <cstring>

#include "tests/runtime/all_kernels.hpp"
#include "tests/support/check.hpp"

using namespace ethosu_sdk;

int main() {
  const auto kernels = host::all_kernels();
  const auto counts = host::all_kernels_parameter_counts();
  CHECK(kernels.size() == counts.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    ErrorText text;
    KernelContext context(text);
    CHECK(kernels[i].function(context, {}) == Status::invalid_argument);
    ErrorText wanted;
    wanted << 0 << " arguments, the operator has " << counts[i];
    if (std::strcmp(text.c_str(), wanted.c_str()) != 0) {
      std::printf("%s: %s, the manifest: %s\n", kernels[i].name, text.c_str(), wanted.c_str());
      CHECK(!"the counts are the same");
    }
  }
  return host::failed_checks == 0 ? 0 : 1;
}
