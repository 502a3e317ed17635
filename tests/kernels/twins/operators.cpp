// Every operator of ExecuTorch's Cortex-M backend on random arguments: a digest of its results for each hundred
// cases. A kernel may refuse arguments that do not go together: that is no case. Linked with the vectors of helium/ and with those of scalar/, it prints the same.
#include <utility>

#include "call.hpp"
#include "kernels/kernels.hpp"
#include "start.hpp"

namespace {

using namespace ethosu_sdk;

constexpr std::uint32_t cases = 2000, cases_of_digest = 100;

using Test = bool (*)(KernelFn kernel, bool nhwc, std::uint32_t& digest);

std::int32_t channels() {
  return below(4) == 0 ? between(17, 70) : between(1, 16);
}
std::int32_t side() {
  return between(1, 6);
}

void image(Call& call, std::int32_t inputs, bool nhwc) {
  const std::int32_t images = rarely() ? 2 : 1, height = side(), width = side();
  nhwc ? call.bytes({images, height, width, inputs}) : call.bytes({images, inputs, height, width}, true);
}

void bias(Call& call, std::int32_t outputs) {
  rarely() ? call.none() : call.numbers(outputs, [] { return between(-20000, 20000); });
}

// From the offsets to the activation's range.
void layer_numbers(Call& call, std::int32_t outputs) {
  std::int32_t least = 0, most = 0;
  call.range(least, most);
  call.integer(below(4) == 0 ? 0 : between(-128, 128));
  call.integer(between(-128, 127));
  call.numbers(outputs, [&] { return call.multiplier(); });
  call.numbers(outputs, [&] { return call.shift(); });
  call.integer(least);
  call.integer(most);
  call.tensor(ScalarType::uint8, {1});
}

bool convolve(KernelFn kernel, bool nhwc, std::uint32_t& digest) {
  Call call;
  const std::int32_t groups = rarely() ? 2 : 1;
  const std::int32_t inputs = between(1, 24) * groups, outputs = groups == 1 && below(8) == 0 ? 66 : between(1, 9) * groups;
  image(call, inputs, nhwc);
  call.bytes({outputs, between(1, 3), between(1, 3), inputs / groups});
  bias(call, outputs);
  call.pair(1, 2);
  call.pair(0, 2);
  call.pair(1, rarely() ? 2 : 1);
  layer_numbers(call, outputs);
  return call.run(kernel, ScalarType::int8, 4, !nhwc, digest);
}

bool convolve_channels(KernelFn kernel, bool nhwc, std::uint32_t& digest) {
  Call call;
  const std::int32_t inputs = channels(), multiplier = below(4) == 0 ? between(2, 3) : 1;
  image(call, inputs, nhwc);
  call.bytes({1, between(1, 3), between(1, 3), inputs * multiplier});
  bias(call, inputs * multiplier);
  call.pair(1, 2);
  call.pair(0, 2);
  call.pair(1, rarely() ? 2 : 1);
  call.integer(multiplier);
  layer_numbers(call, inputs * multiplier);
  return call.run(kernel, ScalarType::int8, 4, !nhwc, digest);
}

bool transpose_convolve(KernelFn kernel, bool nhwc, std::uint32_t& digest) {
  Call call;
  const std::int32_t inputs = between(1, 24), outputs = below(8) == 0 ? 66 : between(1, 9);
  const std::int32_t stride = between(1, 3);
  const std::int32_t height = between(1, 4), width = between(1, 4);
  nhwc ? call.bytes({1, height, width, inputs}) : call.bytes({1, inputs, height, width}, true);
  call.bytes({outputs, between(1, 3), between(1, 3), inputs});
  bias(call, outputs);
  call.integers({stride, stride});
  call.pair(0, 1);
  call.integers({between(0, stride - 1), between(0, stride - 1)});
  call.pair(1, rarely() ? 2 : 1);
  layer_numbers(call, outputs);
  call.tensor(ScalarType::uint8, {1});
  return call.run(kernel, ScalarType::int8, 4, !nhwc, digest);
}

bool average(KernelFn kernel, bool nhwc, std::uint32_t& digest) {
  Call call;
  image(call, channels(), nhwc);
  call.pair(1, 4);
  call.pair(1, 2);
  call.pair(0, 1);
  call.boolean(below(2) == 0);
  call.integer(between(-128, 127));
  call.integer(between(1 << 30, 2147483647));
  call.integer(between(-12, 2));
  call.tensor(ScalarType::uint8, {1});
  return call.run(kernel, ScalarType::int8, 4, !nhwc, digest);
}

bool maximum(KernelFn kernel, bool nhwc, std::uint32_t& digest) {
  Call call;
  std::int32_t least = 0, most = 0;
  call.range(least, most);
  image(call, channels(), nhwc);
  call.pair(1, 4);
  call.pair(1, 2);
  call.pair(0, 1);
  call.integers({1, 1});
  call.boolean(false);
  call.integer(3);
  call.integer(3);
  call.integer(least);
  call.integer(most);
  return call.run(kernel, ScalarType::int8, 4, !nhwc, digest);
}

bool linear(KernelFn kernel, bool, std::uint32_t& digest) {
  Call call;
  const std::int32_t inputs = between(1, 90), outputs = channels();
  call.bytes({between(1, 5), inputs});
  call.bytes({outputs, inputs});
  const bool sums = below(2) == 0;
  sums ? call.none() : bias(call, outputs);
  sums ? bias(call, outputs) : call.none();
  call.integer(between(-128, 128));
  call.integer(below(2) == 0 ? 0 : between(-128, 128));
  call.integer(between(-128, 127));
  call.integers({call.multiplier()});
  call.integers({call.shift()});
  std::int32_t least = 0, most = 0;
  call.range(least, most);
  call.integer(most);
  call.integer(least);
  return call.run(kernel, ScalarType::int8, 2, false, digest);
}

bool multiply_matrices(KernelFn kernel, bool, std::uint32_t& digest) {
  Call call;
  const std::int32_t batch = between(1, 3), inner = between(1, 60);
  call.bytes({batch, between(1, 6), inner});
  call.integer(between(-128, 128));
  call.bytes({batch, channels(), inner});
  call.integer(below(2) == 0 ? 0 : between(-128, 128));
  call.integer(between(-128, 127));
  call.scale();
  call.tensor(ScalarType::uint8, {1});
  return call.run(kernel, ScalarType::int8, 3, false, digest);
}

// Two operands: of one shape, or the second of channels alone; in one layout or in two.
template <typename Between, typename After>
bool combine(KernelFn kernel, std::uint32_t& digest, bool broadcast, Between&& numbers,
             After&& after) {
  Call call;
  const std::int32_t count = channels(), height = side(), width = side();
  const bool pixels = below(2) == 0;
  call.bytes({1, count, height, width}, pixels);
  numbers(call);
  broadcast ? call.bytes({1, count, 1, 1}, pixels)
            : call.bytes({1, count, height, width}, rarely() ? !pixels : pixels);
  numbers(call);
  after(call);
  return call.run(kernel, ScalarType::int8, 4, pixels, digest);
}

bool add(KernelFn kernel, bool, std::uint32_t& digest) {
  const auto operand = [](Call& call) {
    call.integer(between(-128, 127));
    call.scale();
  };
  return combine(kernel, digest, below(4) == 0, operand, [&](Call& call) {
    std::int32_t least = 0, most = 0;
    operand(call);
    call.range(least, most);
    call.integer(least);
    call.integer(most);
  });
}

void zero_point(Call& call) {
  call.integer(between(-128, 127));
}

bool multiply(KernelFn kernel, bool, std::uint32_t& digest) {
  return combine(kernel, digest, below(4) == 0, zero_point, [](Call& call) {
    zero_point(call);
    call.scale();
  });
}

bool divide(KernelFn kernel, bool, std::uint32_t& digest) {
  return combine(kernel, digest, false, zero_point, [](Call& call) {
    zero_point(call);
    call.real(static_cast<double>(between(-100000, 100000)) * 1e-3);
  });
}

bool choose(KernelFn kernel, bool, std::uint32_t& digest) {
  return combine(kernel, digest, below(4) == 0, [](Call&) {}, [](Call&) {});
}

bool look_up(KernelFn kernel, bool, std::uint32_t& digest) {
  Call call;
  image(call, channels(), false);
  call.bytes({256});
  return call.run(kernel, ScalarType::int8, 4, true, digest);
}

bool soften(KernelFn kernel, bool, std::uint32_t& digest) {
  Call call;
  const bool last = below(4) != 0;
  call.bytes({between(1, 3), between(1, 12), between(1, 300)});
  call.integer(last ? -1 : 1);
  call.integer(between(-128, 127));
  call.integer(-128);
  call.integer(between(1 << 30, 2147483647));
  call.integer(between(14, 27));
  call.integer(-248);
  return call.run(kernel, ScalarType::int8, 3, false, digest);
}

bool transpose(KernelFn kernel, bool, std::uint32_t& digest) {
  Call call;
  std::int64_t order[] = {0, 1, 2, 3};
  for (std::uint32_t i = 3; i > 0; --i) {
    std::swap(order[i], order[below(i + 1)]);
  }
  call.bytes({between(1, 3), between(1, 40), side(), side()});
  call.integers({order[0], order[1], order[2], order[3]});
  return call.run(kernel, ScalarType::int8, 4, false, digest);
}

bool pad(KernelFn kernel, bool, std::uint32_t& digest) {
  Call call;
  const bool pixels = below(2) == 0;
  call.bytes({1, between(1, 40), side(), side()}, pixels);
  call.integers({between(0, 1), between(0, 2), between(0, 2), between(0, 2)});
  call.integers({0, between(0, 2), between(0, 2), between(0, 2)});
  call.integer(between(-128, 127));
  return call.run(kernel, ScalarType::int8, 4, pixels, digest);
}

// From the scale to the dtype of the integers.
double quantization(Call& call) {
  const double scale = static_cast<double>(between(1, 4000)) * 1e-4;
  call.real(scale);
  call.integer(between(-128, 127));
  call.integer(-128);
  call.integer(127);
  call.integer(static_cast<std::int64_t>(ScalarType::int8));
  return scale;
}

bool quantize(KernelFn kernel, bool, std::uint32_t& digest) {
  Call call;
  Tensor& input = call.tensor(ScalarType::float32, {between(1, 5), between(1, 200)});
  const double scale = quantization(call);
  for (std::size_t i = 0; i < input.element_count(); ++i) {
    const bool tie = below(4) == 0;
    const double number = tie ? between(-300, 300) * 0.5 : between(-2000000, 2000000) * 1e-4;
    input.as<float>()[i] = static_cast<float>(number * scale);
  }
  return call.run(kernel, ScalarType::int8, 2, false, digest);
}

bool dequantize(KernelFn kernel, bool, std::uint32_t& digest) {
  Call call;
  call.bytes({between(1, 8), rarely() ? 400 : between(1, 200)});
  quantization(call);
  return call.run(kernel, ScalarType::float32, 2, false, digest);
}

const struct {
  const char* name;
  Test test;
  KernelFn kernel;
  bool nhwc;
} operators[] = {
    {"quantize_per_tensor", quantize, kernels::quantize_per_tensor_out, false},
    {"dequantize_per_tensor", dequantize, kernels::cortex_m_dequantize_per_tensor_out, false},
    {"quantized_add", add, kernels::cortex_m_quantized_add_out, false},
    {"quantized_mul", multiply, kernels::cortex_m_quantized_mul_out, false},
    {"quantized_div", divide, kernels::cortex_m_quantized_div_out, false},
    {"quantized_activation", look_up, kernels::cortex_m_quantized_activation_out, false},
    {"minimum", choose, kernels::minimum_out, false},
    {"maximum", choose, kernels::maximum_out, false},
    {"softmax", soften, kernels::cortex_m_softmax_out, false},
    {"transpose", transpose, kernels::permute_copy_out, false},
    {"pad", pad, kernels::cortex_m_pad_out, false},
    {"quantized_linear", linear, kernels::cortex_m_quantized_linear_out, false},
    {"quantized_batch_matmul", multiply_matrices, kernels::cortex_m_quantized_batch_matmul_out, false},
    {"quantized_conv2d", convolve, kernels::cortex_m_quantized_conv2d_out, false},
    {"quantized_conv2d_nhwc", convolve, kernels::cortex_m_quantized_conv2d_nhwc_out, true},
    {"quantized_depthwise_conv2d", convolve_channels, kernels::cortex_m_quantized_depthwise_conv2d_out, false},
    {"quantized_depthwise_conv2d_nhwc", convolve_channels,
     kernels::cortex_m_quantized_depthwise_conv2d_nhwc_out, true},
    {"quantized_transpose_conv2d", transpose_convolve, kernels::cortex_m_quantized_transpose_conv2d_out, false},
    {"quantized_transpose_conv2d_nhwc", transpose_convolve,
     kernels::cortex_m_quantized_transpose_conv2d_nhwc_out, true},
    {"quantized_avg_pool2d", average, kernels::cortex_m_quantized_avg_pool2d_out, false},
    {"quantized_avg_pool2d_nhwc", average, kernels::cortex_m_quantized_avg_pool2d_nhwc_out, true},
    {"quantized_max_pool2d", maximum, kernels::cortex_m_quantized_max_pool2d_out, false},
    {"quantized_max_pool2d_nhwc", maximum, kernels::cortex_m_quantized_max_pool2d_nhwc_out, true},
};

}  // namespace

int main() {
  for (const auto& row : operators) {
    std::uint32_t digest = 2166136261U;  // FNV-1a's first
    std::uint32_t made = 0, computed = 0;
    while (computed < cases && made < 4 * cases) {
      ++made;
      if (!row.test(row.kernel, row.nhwc, digest) || ++computed % cases_of_digest != 0) {
        continue;
      }
      print("operator ");
      print(row.name);
      print(" cases ");
      print(computed);
      print(" digest ");
      print(digest);
      print("\n");
    }
  }
  return 0;
}
