// Which slices of a packed matrix read entries of x that come late: found by a product with an x of which those entries are
// no numbers, so that padding, which reads x as well, is not forgotten.
#include <algorithm>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/packed_rows.h"
#include "kernels/formats/packed_build.h"
#include "kernels/formats/upload.h"

namespace shardmat::packed {
namespace {

constexpr int kBlock = 256;
constexpr std::int64_t kBlocksAtOnce = 4;  ///< of kWarps warps, on a multiprocessor

/// A thread a slice. The last slice waits in any case: when a product is done, so is what came before it.
template <class T, class S>
__global__ void __launch_bounds__(kBlock) mark_late_slices(const Arguments<T> a, PackedSlice* slices) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (index >= a.count) return;
  const PackedSlice slice = slices[index];
  bool late = index == a.count - 1;
  for (int group = 0; group < slice.real; ++group)
    for (int r = 0; r < S::B; ++r) {
      const std::int64_t row = first_row<S>(slice, a, group) + r;
      if (row >= 0 && row < a.rows) late = late || a.y[row] != a.y[row];
    }
  slices[index].late = late ? 1 : 0;
}

/// Puts the slices that wait one behind the other, between the halves of the others, so that kernels may divide them
/// further: where the device takes all slices at once, those that wait are the last to be done.
void gather_late(PackedStorage& a, Stream& stream) {
  auto slices = download<PackedSlice>(a.slice, stream);
  const auto late = std::stable_partition(slices.begin(), slices.end(), [](const PackedSlice& s) { return s.late == 0; });
  a.late.count = slices.end() - late;
  a.late.first = (a.slices - a.late.count) / 2 / kWarps * kWarps;
  std::rotate(slices.begin() + a.late.first, late, slices.end());
  copy_to_device(a.slice.data(), slices.data(), a.slice.bytes(), stream);
}

}  // namespace

bool mark_late(PackedStorage& a, std::int64_t first, Stream& stream) {
  const std::size_t value = size_of(a.type);
  if (!cuda::compiled_for_9_0(mark_late_slices<float, Shape<1, 1>>, a.device)) return false;
  if (available_memory(a.device) < (a.cols + a.rows) * static_cast<std::int64_t>(value)) return false;
  const Buffer x(a.device, static_cast<std::size_t>(a.cols) * value), y(a.device, static_cast<std::size_t>(a.rows) * value);
  fill_bytes(x.data(), 0, static_cast<std::size_t>(first) * value, stream);
  fill_bytes(x.as<char>() + static_cast<std::size_t>(first) * value, 0xff, static_cast<std::size_t>(a.cols - first) * value,
             stream);  // ones in all bits are no number
  make_packed(std::shared_ptr<Storage>(std::shared_ptr<Storage>(), &a), {{"parts", 1}, {"in_flight", 9}}, stream)
      ->multiply(1, x.data(), 0, y.data(), stream);
  dispatch(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_shape(a.shape, [&](auto shape) {
      cuda::launch(mark_late_slices<T, decltype(shape)>, a.slices, kBlock, stream,
                   arguments<T>(a, {T(1), x.as<T>(), T(0), y.as<T>()}), a.slice.as<PackedSlice>());
    });
  });
  stream.synchronize();
  if (a.slices <= kBlocksAtOnce * kWarps * properties(a.device).multiprocessors) gather_late(a, stream);
  return true;
}

}  // namespace shardmat::packed
