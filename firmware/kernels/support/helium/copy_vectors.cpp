#include "kernels/support/copy_vectors.hpp"

#include <arm_mve.h>

namespace ethosu_sdk::kernels {
namespace {

std::size_t copy_contiguous(const std::uint8_t* from, std::uint8_t* to, std::size_t bytes) {
  for (std::size_t i = bytes / 16; i > 0; --i) {
    vst1q_u8(to, vld1q_u8(from));
    from += 16;
    to += 16;
  }
  const mve_pred16_t rest = vctp8q(bytes % 16);
  vst1q_p_u8(to, vld1q_z_u8(from, rest), rest);
  return bytes;
}

// Offsets are 16 bits: of seven steps at most.
constexpr std::size_t longest_step = 0xFFFF / 7;

uint16x8_t eight_offsets(std::size_t step) {
  return vmulq_n_u16(vidupq_n_u16(0, 1), static_cast<std::uint16_t>(step));
}

uint32x4_t four_offsets(std::size_t step) {
  return vmulq_n_u32(vidupq_n_u32(0, 1), static_cast<std::uint32_t>(step));
}

// Elements of one size: how many at once, and how they are loaded and stored `step` apart.
template <std::size_t Bytes>
struct Elements;

template <>
struct Elements<1> {
  static constexpr std::size_t lanes = 8;
  static uint16x8_t offsets(std::size_t step) { return eight_offsets(step); }
  static uint16x8_t gather(const std::uint8_t* from, uint16x8_t at) {
    return vldrbq_gather_offset_u16(from, at);
  }
  static void scatter(std::uint8_t* to, uint16x8_t at, uint16x8_t values) {
    vstrbq_scatter_offset_u16(to, at, values);
  }
  static uint16x8_t load(const std::uint8_t* from) { return vldrbq_u16(from); }
  static void store(std::uint8_t* to, uint16x8_t values) { vstrbq_u16(to, values); }
};

template <>
struct Elements<2> {
  static constexpr std::size_t lanes = 8;
  static uint16x8_t offsets(std::size_t step) { return eight_offsets(step); }
  static uint16x8_t gather(const std::uint8_t* from, uint16x8_t at) {
    return vldrhq_gather_shifted_offset_u16(reinterpret_cast<const std::uint16_t*>(from), at);
  }
  static void scatter(std::uint8_t* to, uint16x8_t at, uint16x8_t values) {
    vstrhq_scatter_shifted_offset_u16(reinterpret_cast<std::uint16_t*>(to), at, values);
  }
  static uint16x8_t load(const std::uint8_t* from) {
    return vld1q_u16(reinterpret_cast<const std::uint16_t*>(from));
  }
  static void store(std::uint8_t* to, uint16x8_t values) {
    vst1q_u16(reinterpret_cast<std::uint16_t*>(to), values);
  }
};

template <>
struct Elements<4> {
  static constexpr std::size_t lanes = 4;
  static uint32x4_t offsets(std::size_t step) { return four_offsets(step); }
  static uint32x4_t gather(const std::uint8_t* from, uint32x4_t at) {
    return vldrwq_gather_shifted_offset_u32(reinterpret_cast<const std::uint32_t*>(from), at);
  }
  static void scatter(std::uint8_t* to, uint32x4_t at, uint32x4_t values) {
    vstrwq_scatter_shifted_offset_u32(reinterpret_cast<std::uint32_t*>(to), at, values);
  }
  static uint32x4_t load(const std::uint8_t* from) {
    return vld1q_u32(reinterpret_cast<const std::uint32_t*>(from));
  }
  static void store(std::uint8_t* to, uint32x4_t values) {
    vst1q_u32(reinterpret_cast<std::uint32_t*>(to), values);
  }
};

// Bytes that are so near that 8 bits hold the offsets of sixteen.
constexpr std::size_t longest_near_step = 0xFF / 15;

std::size_t scatter_near(const std::uint8_t* from, std::uint8_t* to, std::size_t step, std::size_t count) {
  const uint8x16_t offsets = vmulq_n_u8(vidupq_n_u8(0, 1), static_cast<std::uint8_t>(step));
  for (std::size_t i = count / 16; i > 0; --i) {
    vstrbq_scatter_offset_u8(to, offsets, vld1q_u8(from));
    from += 16;
    to += 16 * step;
  }
  return count / 16 * 16;
}

template <std::size_t Bytes>
std::size_t gather(const std::uint8_t* from, std::size_t step, std::uint8_t* to, std::size_t count) {
  using Group = Elements<Bytes>;
  const auto offsets = Group::offsets(step);
  for (std::size_t i = count / Group::lanes; i > 0; --i) {
    Group::store(to, Group::gather(from, offsets));
    from += Group::lanes * step * Bytes;
    to += Group::lanes * Bytes;
  }
  return count / Group::lanes * Group::lanes;
}

template <std::size_t Bytes>
std::size_t scatter(const std::uint8_t* from, std::uint8_t* to, std::size_t step, std::size_t count) {
  if (Bytes == 1 && step <= longest_near_step) {
    return scatter_near(from, to, step, count);
  }
  using Group = Elements<Bytes>;
  const auto offsets = Group::offsets(step);
  for (std::size_t i = count / Group::lanes; i > 0; --i) {
    Group::scatter(to, offsets, Group::load(from));
    from += Group::lanes * Bytes;
    to += Group::lanes * step * Bytes;
  }
  return count / Group::lanes * Group::lanes;
}

}  // namespace

template <std::size_t Bytes>
std::size_t copy_vectors(const std::uint8_t* from, std::size_t from_step, std::uint8_t* to,
                         std::size_t to_step, std::size_t count) {
  // Elements that are written more than once, or long steps, also backwards.
  if (count == 0 || to_step == 0 || from_step > longest_step || to_step > longest_step) {
    return 0;
  }
  // A vector is read before it is written: as element by element only where the rows do not overlap.
  const std::uint8_t* const from_end = from + ((count - 1) * from_step + 1) * Bytes;
  const std::uint8_t* const to_end = to + ((count - 1) * to_step + 1) * Bytes;
  if (from < to_end && to < from_end) {
    return 0;
  }
  if (from_step == 1 && to_step == 1) {
    return copy_contiguous(from, to, count * Bytes) / Bytes;
  }
  if constexpr (Bytes <= 4) {
    if (to_step == 1) {
      return gather<Bytes>(from, from_step, to, count);
    }
    if (from_step == 1) {
      return scatter<Bytes>(from, to, to_step, count);
    }
  }
  return 0;
}

}  // namespace ethosu_sdk::kernels

#include "kernels/support/copy_vectors_instances.hpp"
