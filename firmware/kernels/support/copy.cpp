#include "kernels/support/copy.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/support/copy_vectors.hpp"
#include "kernels/support/walk.hpp"

namespace ethosu_sdk::kernels {
namespace {

// Makes the longest loop the innermost one if the rows are short.
void lengthen_rows(Loops<2>& loops) {
  constexpr std::size_t short_row = 32;
  const std::size_t last = loops.depth - 1;
  if (loops.depth < 2 || loops.sizes[last] >= short_row) {
    return;
  }
  const std::size_t longest =
      static_cast<std::size_t>(std::max_element(loops.sizes, loops.sizes + loops.depth) - loops.sizes);
  std::swap(loops.sizes[longest], loops.sizes[last]);
  std::swap(loops.strides[longest], loops.strides[last]);
}

template <std::size_t Bytes>
void copy_strided(const Tensor& input, const View& from, Tensor& output, const View& to) {
  const auto* const source = input.as<const std::uint8_t>();
  auto* const destination = output.as<std::uint8_t>();
  const View* const views[] = {&to, &from};
  Loops<2> loops = loops_over(views);
  lengthen_rows(loops);
  walk_rows(loops, views, [&](const std::size_t(&at)[2]) {
    const std::size_t(&steps)[2] = loops.strides[loops.depth - 1];
    copy_row<Bytes>(source + at[1] * Bytes, steps[1], destination + at[0] * Bytes, steps[0],
                    loops.sizes[loops.depth - 1]);
  });
}

// The dimensions of `to` from the one with the longest steps to the one with the shortest: rows are written
// in memory order.
void sort_by_steps(const View& to, std::size_t (&order)[max_rank]) {
  for (std::size_t i = 0; i < to.rank; ++i) {
    std::size_t place = i;
    for (; place > 0 && to.strides[order[place - 1]] < to.strides[i]; --place) {
      order[place] = order[place - 1];
    }
    order[place] = i;
  }
}

using CopyStrided = void (*)(const Tensor&, const View&, Tensor&, const View&);

CopyStrided copy_for(ScalarType dtype) {
  switch (element_bytes(dtype)) {
    case 1:
      return copy_strided<1>;
    case 2:
      return copy_strided<2>;
    case 4:
      return copy_strided<4>;
    default:
      return copy_strided<8>;
  }
}

}  // namespace

template <std::size_t Bytes>
void copy_row(const void* source, std::size_t from_step, void* destination, std::size_t to_step,
              std::size_t count) {
  const auto* from = static_cast<const std::uint8_t*>(source);
  auto* to = static_cast<std::uint8_t*>(destination);
  std::size_t done = copy_vectors<Bytes>(from, from_step, to, to_step, count);
  from += done * from_step * Bytes;
  to += done * to_step * Bytes;
  for (; done < count; ++done) {
    std::memmove(to, from, Bytes);
    from += from_step * Bytes;
    to += to_step * Bytes;
  }
}

template void copy_row<1>(const void*, std::size_t, void*, std::size_t, std::size_t);
template void copy_row<2>(const void*, std::size_t, void*, std::size_t, std::size_t);
template void copy_row<4>(const void*, std::size_t, void*, std::size_t, std::size_t);
template void copy_row<8>(const void*, std::size_t, void*, std::size_t, std::size_t);

void copy_elements(const Tensor& input, const View& from, Tensor& output, const View& to) {
  std::size_t order[max_rank] = {};
  sort_by_steps(to, order);
  copy_for(output.dtype)(input, chosen_dims(from, order, to.rank), output, chosen_dims(to, order, to.rank));
}

void copy_element(const Tensor& input, std::size_t from, Tensor& output, std::size_t to) {
  const std::size_t bytes = element_bytes(output.dtype);
  std::memmove(output.as<std::uint8_t>() + to * bytes, input.as<const std::uint8_t>() + from * bytes, bytes);
}

Status copy_view(Arguments& arguments, const Tensor& input, const View& from, Tensor& output) {
  arguments.expect_dtype(output, input.dtype, "the output");
  if (arguments.resize(output, from.sizes, from.rank) == Status::ok) {
    copy_elements(input, from, output, view_of(output));
  }
  return arguments.status();
}

void copy_all(const Tensor& input, Tensor& output) {
  if (same_layout(input, output)) {
    copy_bytes(input, output);
  } else {
    copy_elements(input, view_of(input), output, view_of(output));
  }
}

void copy_bytes(const Tensor& input, Tensor& output) {
  const std::size_t count = output.byte_count();
  if (count != 0 && output.data != input.data) {
    const auto* const from = input.as<const std::uint8_t>();
    auto* const to = output.as<std::uint8_t>();
    const std::size_t done = copy_vectors<1>(from, 1, to, 1, count);
    std::memmove(to + done, from + done, count - done);
  }
}

bool same_layout(const Tensor& left, const Tensor& right) {
  for (std::size_t i = 0; i < left.rank; ++i) {
    if (left.dim_order[i] != right.dim_order[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace ethosu_sdk::kernels
