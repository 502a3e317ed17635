// Visits the elements of several tensors together, whatever their layouts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/support/layout.hpp"

namespace ethosu_sdk::kernels {

// The nested loops that visit the elements of some views, the last one innermost: as few as do it, at least
// one.
template <std::size_t Count>
struct Loops {
  std::size_t depth = 0;
  std::size_t sizes[max_rank];
  std::size_t strides[max_rank][Count];  // of each view
};

// Writes the loops over the first view's dimensions and returns how many; 0 if there is no element. `strides`
// has `count` of each loop. Dimensions of size 1 go, and those that follow one another in all views become
// one.
std::size_t plan_loops(const View* const* views, std::size_t count, std::size_t* sizes, std::size_t* strides);

template <std::size_t Count>
Loops<Count> loops_over(const View* const (&views)[Count]) {
  Loops<Count> loops;
  loops.depth = plan_loops(views, Count, loops.sizes, loops.strides[0]);
  return loops;
}

// Calls `function(offsets)` for the first element of every innermost loop.
template <std::size_t Count, typename Function>
void walk_rows(const Loops<Count>& loops, const View* const (&views)[Count], Function&& function) {
  if (loops.depth == 0) {
    return;
  }
  std::size_t index[max_rank] = {};
  std::size_t offsets[Count];
  for (std::size_t n = 0; n < Count; ++n) {
    offsets[n] = views[n]->first;
  }
  std::size_t loop = 0;
  do {
    function(offsets);
    for (loop = loops.depth - 1; loop > 0;) {
      --loop;
      const std::size_t size = loops.sizes[loop];
      const bool again = ++index[loop] < size;
      for (std::size_t n = 0; n < Count; ++n) {
        // Back to the first element at the end of the loop.
        offsets[n] += loops.strides[loop][n] - (again ? 0 : loops.strides[loop][n] * size);
      }
      if (again) {
        ++loop;  // not 0: another row
        break;
      }
      index[loop] = 0;
    }
  } while (loop > 0);
}

// Calls `function(offsets)` for every index tuple of the first view's sizes, the last dimension fastest;
// offsets[n] is the element of views[n], which is large enough for them.
template <std::size_t Count, typename Function>
void walk(const View* const (&views)[Count], Function&& function) {
  const Loops<Count> loops = loops_over(views);
  walk_rows(loops, views, [&](const std::size_t(&row)[Count]) {
    const std::size_t* const strides = loops.strides[loops.depth - 1];
    std::size_t at[Count];
    for (std::size_t n = 0; n < Count; ++n) {
      at[n] = row[n];
    }
    for (std::size_t i = loops.sizes[loops.depth - 1]; i > 0; --i) {
      function(static_cast<const std::size_t(&)[Count]>(at));
      for (std::size_t n = 0; n < Count; ++n) {
        at[n] += strides[n];
      }
    }
  });
}

// Calls `function(index)` for every index tuple of `sizes`, the last dimension fastest.
template <typename Function>
void walk_indices(const std::int32_t* sizes, std::size_t rank, Function&& function) {
  if (!has_indices(sizes, rank)) {
    return;
  }
  std::int32_t index[max_rank] = {};
  std::size_t dim = 0;
  do {
    function(static_cast<const std::int32_t*>(index));
    dim = rank;
    while (dim > 0 && ++index[dim - 1] == sizes[dim - 1]) {
      index[--dim] = 0;
    }
  } while (dim > 0);
}

// Calls `function(offset in the first view, in the second)` for each plane of their last two dimensions.
template <typename Function>
void for_each_plane(const View& input, const View& output, Function&& function) {
  View planes = input;
  planes.rank -= 2;
  walk({&planes, &output}, [&](const std::size_t(&at)[2]) { function(at[0], at[1]); });
}

}  // namespace ethosu_sdk::kernels
