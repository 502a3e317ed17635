#include "kernels/support/layout.hpp"

namespace ethosu_sdk::kernels {

void View::append(std::int32_t size, std::size_t stride) {
  sizes[rank] = size;
  strides[rank++] = stride;
}

bool has_indices(const std::int32_t* sizes, std::size_t rank) {
  for (std::size_t dim = 0; dim < rank; ++dim) {
    if (sizes[dim] == 0) {
      return false;
    }
  }
  return true;
}

View view_of(const Tensor& tensor) {
  View view;
  view.rank = tensor.rank;
  std::size_t stride = 1;
  for (std::size_t i = tensor.rank; i-- > 0;) {
    const std::size_t dim = tensor.dim_order[i];
    view.sizes[dim] = tensor.sizes[dim];
    view.strides[dim] = stride;
    stride *= static_cast<std::size_t>(tensor.sizes[dim]);
  }
  return view;
}

View part_of(const View& view, std::size_t dim, std::int64_t start, std::int64_t count, std::int64_t step) {
  View part = view;
  part.sizes[dim] = static_cast<std::int32_t>(count);
  part.first += count == 0 ? 0 : static_cast<std::size_t>(start) * view.strides[dim];
  part.strides[dim] *= count > 1 ? static_cast<std::size_t>(step) : 1;
  return part;
}

View chosen_dims(const View& view, const std::size_t* dims, std::size_t count) {
  View chosen;
  chosen.first = view.first;
  for (std::size_t i = 0; i < count; ++i) {
    chosen.append(view.sizes[dims[i]], view.strides[dims[i]]);
  }
  return chosen;
}

View slice_at(const View& view, std::size_t dim, std::size_t position) {
  View slice;
  slice.first = view.first + position * view.strides[dim];
  for (std::size_t i = 0; i < view.rank; ++i) {
    if (i != dim) {
      slice.append(view.sizes[i], view.strides[i]);
    }
  }
  return slice;
}

View broadcast_view(const Tensor& tensor, const std::int32_t* sizes, std::size_t rank) {
  const View own = view_of(tensor);
  const std::size_t repeated = rank - tensor.rank;
  View view;
  for (std::size_t i = 0; i < rank; ++i) {
    const bool stays = i < repeated || own.sizes[i - repeated] == 1;
    view.append(sizes[i], stays ? 0 : own.strides[i - repeated]);
  }
  return view;
}

Lanes lanes_along(const Tensor& tensor, std::size_t dim) {
  Lanes lanes;
  bool inside = false;
  for (std::size_t i = 0; i < tensor.rank; ++i) {
    const auto size = static_cast<std::size_t>(tensor.sizes[tensor.dim_order[i]]);
    if (tensor.dim_order[i] == dim) {
      lanes.count = size;
      inside = true;
    } else if (inside) {
      lanes.stride *= size;
    } else {
      lanes.outer *= size;
    }
  }
  return lanes;
}

}  // namespace ethosu_sdk::kernels
