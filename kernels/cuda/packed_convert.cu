// Conversion to packed rows on the device, from CSR there: groups counted by a thread each, sorted, slices analysed and filled by
// a warp each.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <bit>

#include "kernels/cuda/launch.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/packed_build.h"
#include "kernels/formats/packed_pieces.h"

namespace shardmat::packed {
namespace {

constexpr int kBlock = 128;
constexpr unsigned kAll = 0xffffffffu;
using Matrix = Source<std::int32_t>;

Matrix source_of(const CsrStorage& csr) {
  return {csr.rows, csr.cols, csr.wide_offsets ? nullptr : csr.row_ptr.as<std::int32_t>(),
          csr.wide_offsets ? csr.row_ptr.as<std::int64_t>() : nullptr, csr.col_idx.as<std::int32_t>()};
}

template <int B, int W>
__global__ void count_groups(Matrix a, PackedShape shape, std::int64_t groups, std::uint64_t* keys, std::uint32_t* ids) {
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (group >= groups) return;
  std::uint64_t pieces = 0, singles = 0;
  const std::int64_t row = group * B - shape.shift;
  PieceReader<B, W, std::int32_t> reader(a, row);
  for (std::int64_t start; (start = reader.find_piece()) >= 0; ++pieces) reader.template skip<W>(start);
  if (B == 1 && W > 1) singles = a.offset(row + 1) - a.offset(row) - pieces * W;
  keys[group] = sort_key(group, shape.window, pieces, singles);
  ids[group] = static_cast<std::uint32_t>(group);
}

__device__ int warp_min(int value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(kAll, value);
#else
  for (int offset = 16; offset > 0; offset /= 2) value = min(value, __shfl_xor_sync(kAll, value, offset));
  return value;
#endif
}
__device__ int warp_max(int value) { return -1 - warp_min(-1 - value); }

/// What all lanes of a warp agree on about one slot.
struct Slot {
  PackedSlotKind kind;
  int base;   ///< smallest first column
  int delta;  ///< first column less first row, of the first lane
};

/// `start` is the first column of this lane's piece, or -1; `real` is false for lanes beyond the last group.
__device__ Slot classify(int start, std::int64_t row, bool real) {
  const bool active = start >= 0;
  const int low = warp_min(active ? start : INT_MAX), high = warp_max(active ? start : INT_MIN);
  const int delta = static_cast<int>(start - row);
  const int first = __shfl_sync(kAll, delta, 0);
  const bool shared = __all_sync(kAll, !real || (active && delta == first));
  return {shared ? kSharedSlot : high - low <= 0xffff ? kNarrowSlot : kFullSlot, low, first};
}

/// A warp's place in the matrix.
struct Lane {
  std::int64_t slice;
  int lane;
  bool real;           ///< this lane has a group
  std::uint32_t group;  ///< its group, or the last of the slice
};

__device__ Lane lane_of(std::int64_t groups, const std::uint32_t* order) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  Lane at{thread / kPackedLanes, static_cast<int>(thread % kPackedLanes), thread < groups, 0};
  const std::int64_t position = thread < groups ? thread : groups - 1;
  at.group = order == nullptr ? static_cast<std::uint32_t>(position) : order[position];
  return at;
}

/// Visits the slots of one width: visit(slot, start) while any lane has a piece. `visit` must consume the piece.
template <int B, int W, bool Singles, class Visit>
__device__ void for_each_slot(const Matrix& a, std::int64_t row, bool real, const Visit& visit) {
  PieceReader<B, W, std::int32_t> reader(a, real ? row : a.rows);
  while (true) {
    const auto start = static_cast<int>(Singles ? reader.find_single() : reader.find_piece());
    if (!__any_sync(kAll, start >= 0)) return;
    visit(classify(start, row, real), start, reader);
  }
}

struct SizeArrays {
  std::uint64_t *value_units, *index_units, *deltas, *order, *hash[2];
};

template <int B, int W>
__global__ void analyse_slices(Matrix a, PackedShape shape, int value_bytes, std::int64_t groups,
                               const std::uint32_t* __restrict__ order, PackedSlice* slices, SizeArrays sizes,
                               std::int64_t count) {
  const Lane at = lane_of(groups, order);
  if (at.slice >= count) return;
  const std::int64_t row = static_cast<std::int64_t>(at.group) * B - shape.shift;
  SliceCounts counts;
  std::uint64_t hash[2] = {1, 2};
  for_each_slot<B, W, false>(a, row, at.real, [&](const Slot& slot, int start, auto& reader) {
    ++counts.pieces[slot.kind];
    if (slot.kind == kSharedSlot) fold_delta(hash, slot.delta);
    if (start >= 0) reader.template skip<W>(start);
  });
  if constexpr (B == 1 && W > 1) {
    fold_delta(hash, -1);
    for_each_slot<B, W, true>(a, row, at.real, [&](const Slot& slot, int start, auto& reader) {
      ++counts.singles[slot.kind];
      if (slot.kind == kSharedSlot) fold_delta(hash, slot.delta);
      if (start >= 0) reader.template skip<1>(start);
    });
  }
  const std::int64_t begin = max(row, std::int64_t{0}), end = min(row + B, a.rows);
  std::uint64_t nnz = at.real ? a.offset(end) - a.offset(begin) : 0;
  for (int offset = 16; offset > 0; offset /= 2) nnz += __shfl_xor_sync(kAll, nnz, offset);
  const std::uint32_t first = __shfl_sync(kAll, at.group, 0);
  const bool consecutive = __all_sync(kAll, !at.real || at.group == first + at.lane);
  if (at.lane != 0) return;

  const SliceSizes size = slice_sizes(counts, shape, value_bytes, nnz, consecutive, hash);
  PackedSlice& slice = slices[at.slice];
  for (int k = 0; k < kPackedSlotKinds; ++k) {
    slice.pieces[k] = static_cast<std::uint16_t>(size.csr ? 0 : counts.pieces[k]);
    slice.singles[k] = static_cast<std::uint16_t>(size.csr ? 0 : counts.singles[k]);
  }
  slice.consecutive = consecutive;
  slice.csr = size.csr;
  slice.groups = first;
  sizes.value_units[at.slice] = size.value_units;
  sizes.index_units[at.slice] = size.index_units;
  sizes.deltas[at.slice] = size.deltas;
  sizes.order[at.slice] = size.order;
  // A slice whose deltas nobody may share gets a hash of its own.
  sizes.hash[0][at.slice] = size.hash[0] != 0 ? size.hash[0] : static_cast<std::uint64_t>(at.slice);
  sizes.hash[1][at.slice] = size.hash[0] != 0 ? size.hash[1] : ~static_cast<std::uint64_t>(at.slice);
}

__global__ void number_items(std::int64_t count, std::uint32_t* ids) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) ids[i] = static_cast<std::uint32_t>(i);
}

/// representative[i] = the first slice with the same deltas; the others need no room for theirs.
__global__ void share_deltas(std::int64_t count, const std::uint64_t* sorted, const std::uint32_t* slice_of,
                             const std::uint64_t* second, std::uint32_t* representative, std::uint64_t* deltas) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  std::int64_t low = 0, high = i;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (sorted[middle] < sorted[i])
      low = middle + 1;
    else
      high = middle;
  }
  const std::uint32_t mine = slice_of[i], first = slice_of[low];
  const bool same = second[mine] == second[first];
  representative[mine] = same ? first : mine;
  if (same && mine != first) deltas[mine] = 0;
}

__global__ void place_slices(std::int64_t count, std::int64_t groups, const std::uint32_t* __restrict__ sorted,
                             const std::uint32_t* representative, SizeArrays at, PackedSlice* slices, std::uint32_t* order) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t i = thread / kPackedLanes;
  if (i >= count) return;
  PackedSlice& slice = slices[i];
  if (!slice.consecutive) order[at.order[i] + thread % kPackedLanes] = sorted[min(thread, groups - 1)];
  __syncwarp();
  if (thread % kPackedLanes != 0) return;
  slice.values = static_cast<std::uint32_t>(at.value_units[i]);
  slice.indices = static_cast<std::uint32_t>(at.index_units[i]);
  slice.deltas = static_cast<std::uint32_t>(at.deltas[representative[i]]);
  if (!slice.consecutive) slice.groups = static_cast<std::uint32_t>(at.order[i]);
}

template <class T>
struct Arrays {
  const PackedSlice* slices;
  const std::uint32_t* order;
  std::int32_t* deltas;
  char* indices;
  T* values;
};

/// Copies the rows of a CSR slice; offsets count from the slice's first nonzero.
template <class T, int B>
__device__ void fill_rows(const Matrix& a, const T* from, std::int64_t row, const Lane& at, const PackedSlice& slice,
                          const Arrays<T>& to, bool structure) {
  std::int32_t length[B], sum = 0;
  for (int r = 0; r < B; ++r) {
    const bool inside = at.real && row + r >= 0 && row + r < a.rows;
    length[r] = inside ? static_cast<std::int32_t>(a.offset(row + r + 1) - a.offset(row + r)) : 0;
    sum += length[r];
  }
  std::int32_t before = sum;
  for (int offset = 1; offset < kPackedLanes; offset *= 2) {
    const std::int32_t other = __shfl_up_sync(kAll, before, offset);
    if (at.lane >= offset) before += other;
  }
  before -= sum;
  auto* columns = reinterpret_cast<std::int32_t*>(to.indices + std::uint64_t{slice.indices} * kPackedUnit);
  T* values = to.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
  std::int32_t* offsets = to.deltas + slice.deltas;
  for (int owner = 0; owner < kPackedLanes; ++owner) {
    const std::int64_t first_row = __shfl_sync(kAll, row, owner);
    std::int32_t out = __shfl_sync(kAll, before, owner);
    for (int r = 0; r < B; ++r) {
      const std::int32_t count = __shfl_sync(kAll, length[r], owner);
      const std::int64_t start = count > 0 ? a.offset(first_row + r) : 0;
      if (structure && at.lane == 0) offsets[owner * B + r] = out;
      for (std::int32_t k = at.lane; k < count; k += kPackedLanes) {
        values[out + k] = from[start + k];
        if (structure) columns[out + k] = a.col_idx[start + k];
      }
      out += count;
    }
    if (structure && at.lane == 0 && owner == kPackedLanes - 1) offsets[kPackedLanes * B] = out;
  }
}

/// Writes the slots of one width of a slice.
template <class T, int B, int W, bool Singles>
__device__ void fill_slots(const Matrix& a, const T* from, std::int64_t row, const Lane& at, const std::uint16_t* slots,
                           std::int32_t* deltas, char* indices, T* values, bool structure) {
  constexpr int kWidth = Singles ? 1 : W;
  int filled[kPackedSlotKinds] = {0, 0, 0};
  for_each_slot<B, W, Singles>(a, row, at.real, [&](const Slot& slot, int start, auto& reader) {
    const int position = filled[slot.kind]++;
    const int before = slot.kind == kSharedSlot ? 0 : slot.kind == kNarrowSlot ? slots[0] : slots[0] + slots[1];
    T* out = values + static_cast<std::int64_t>(before + position) * (kWidth * B * kPackedLanes) + at.lane;
    if (start >= 0)
      reader.template take<kWidth>(start, [&](int j, int r, std::int64_t k) {
        out[(j * B + r) * kPackedLanes] = k >= 0 ? from[k] : T(0);
      });
    else
      for (int j = 0; j < kWidth * B; ++j) out[j * kPackedLanes] = T(0);
    if (!structure) return;
    const int column = start >= 0 ? start : slot.base;
    if (slot.kind == kSharedSlot) {
      if (at.lane == 0) deltas[position] = slot.delta;
    } else if (slot.kind == kNarrowSlot) {
      if (at.lane == 0) deltas[slots[0] + position] = slot.base;
      reinterpret_cast<std::uint16_t*>(indices)[position * kPackedLanes + at.lane] = static_cast<std::uint16_t>(column - slot.base);
    } else {
      reinterpret_cast<std::int32_t*>(indices + std::int64_t{slots[1]} * 2 * kPackedLanes)[position * kPackedLanes + at.lane] = column;
    }
  });
}

template <class T, int B, int W>
__global__ void fill_slices(Matrix a, const T* __restrict__ from, PackedShape shape, std::int64_t groups, std::int64_t count,
                            Arrays<T> to, bool structure) {
  Lane at = lane_of(groups, nullptr);
  if (at.slice >= count) return;
  const PackedSlice slice = to.slices[at.slice];
  at.group = slice.consecutive ? slice.groups + at.lane : to.order[slice.groups + at.lane];
  const std::int64_t row = static_cast<std::int64_t>(at.group) * B - shape.shift;
  if (slice.csr) {
    fill_rows<T, B>(a, from, row, at, slice, to, structure);
    return;
  }
  std::int32_t* deltas = to.deltas + slice.deltas;
  char* indices = to.indices + std::uint64_t{slice.indices} * kPackedUnit;
  T* values = to.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
  fill_slots<T, B, W, false>(a, from, row, at, slice.pieces, deltas, indices, values, structure);
  if constexpr (B == 1 && W > 1) {
    SliceCounts counts;
    for (int k = 0; k < kPackedSlotKinds; ++k) counts.pieces[k] = slice.pieces[k];
    fill_slots<T, B, W, true>(a, from, row, at, slice.singles, deltas + counts.piece_deltas(),
                              indices + 2 * counts.piece_indices(), values + counts.values(shape), structure);
  }
}

/// Scratch of a CUB algorithm: asked for its size, then run.
template <class Algorithm>
void with_scratch(Stream& stream, const Algorithm& algorithm) {
  std::size_t bytes = 0;
  SHARDMAT_CUDA_CHECK(algorithm(nullptr, bytes));
  const Buffer scratch(stream.device(), bytes + 1);
  SHARDMAT_CUDA_CHECK(algorithm(scratch.data(), bytes));
  stream.synchronize();
}

template <class T>
Buffer array(std::int64_t count, Stream& stream) {
  return Buffer(stream.device(), static_cast<std::size_t>(count) * sizeof(T));
}

/// Sorts 64-bit keys of `bits` bits with their 32-bit items, stable.
void sort_pairs(const Buffer& keys, const Buffer& sorted_keys, const Buffer& items, const Buffer& sorted_items, std::int64_t count,
                int bits, Stream& stream) {
  with_scratch(stream, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.as<std::uint64_t>(), sorted_keys.as<std::uint64_t>(),
                                           items.as<std::uint32_t>(), sorted_items.as<std::uint32_t>(), count, 0, bits,
                                           cuda::native(stream));
  });
}

/// Exclusive sums in place; returns the total. `sizes` has one entry more than is counted.
std::uint64_t sum_up(const Buffer& sizes, std::int64_t count, Stream& stream) {
  fill_bytes(sizes.as<std::uint64_t>() + count, 0, sizeof(std::uint64_t), stream);
  with_scratch(stream, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, sizes.as<std::uint64_t>(), sizes.as<std::uint64_t>(), count + 1,
                                         cuda::native(stream));
  });
  std::uint64_t total = 0;
  copy_to_host(&total, sizes.as<std::uint64_t>() + count, sizeof total, stream);
  return total;
}

/// Groups in the order in which slices take them.
Buffer order_groups(const Matrix& a, const PackedShape& shape, std::int64_t groups, Stream& stream) {
  Buffer keys = array<std::uint64_t>(groups, stream), sorted_keys = array<std::uint64_t>(groups, stream);
  Buffer ids = array<std::uint32_t>(groups, stream), sorted = array<std::uint32_t>(groups, stream);
  with_shape(shape, [&](auto rows, auto width) {
    cuda::launch(count_groups<rows, width>, groups, kBlock, stream, a, shape, groups, keys.as<std::uint64_t>(),
                 ids.as<std::uint32_t>());
  });
  if (shape.window <= 1) {
    stream.synchronize();
    return ids;
  }
  const int window_bits = std::bit_width(static_cast<std::uint64_t>(groups / shape.window));
  sort_pairs(keys, sorted_keys, ids, sorted, groups, 32 + window_bits, stream);
  return sorted;
}

std::shared_ptr<PackedStorage> analyse(ConversionInput& input, const PackedShape& shape) {
  const auto csr = input.csr();
  const Matrix a = source_of(*csr);
  Stream& stream = input.stream();
  auto packed = std::make_shared<PackedStorage>();
  packed->shape = shape;
  const std::int64_t groups = shape.groups(a.rows), count = packed->slices = (groups + kPackedLanes - 1) / kPackedLanes;
  if (groups == 0) {
    packed->set_sizes(input, 0, 0, 0, 0);
    return packed;
  }
  const Buffer sorted = order_groups(a, shape, groups, stream);
  packed->slice = array<PackedSlice>(count, stream);
  Buffer sizes[6];
  for (Buffer& size : sizes) size = array<std::uint64_t>(count + 1, stream);
  const auto at = [&](int k) { return sizes[k].as<std::uint64_t>(); };
  const SizeArrays arrays{at(0), at(1), at(2), at(3), {at(4), at(5)}};
  with_shape(shape, [&](auto rows, auto width) {
    cuda::launch(analyse_slices<rows, width>, count * kPackedLanes, kBlock, stream, a, shape,
                 static_cast<int>(input.value_bytes()), groups, sorted.as<std::uint32_t>(), packed->slice.as<PackedSlice>(), arrays,
                 count);
  });

  const Buffer hashes = array<std::uint64_t>(count, stream), slice_of = array<std::uint32_t>(count, stream),
               ids = array<std::uint32_t>(count, stream), representative = array<std::uint32_t>(count, stream);
  cuda::launch(number_items, count, kBlock, stream, count, ids.as<std::uint32_t>());
  sort_pairs(sizes[4], hashes, ids, slice_of, count, 64, stream);
  cuda::launch(share_deltas, count, kBlock, stream, count, hashes.as<std::uint64_t>(), slice_of.as<std::uint32_t>(), at(5),
               representative.as<std::uint32_t>(), at(2));
  std::uint64_t totals[4];
  for (int k = 0; k < 4; ++k) totals[k] = sum_up(sizes[k], count, stream);
  packed->set_sizes(input, totals[0], totals[1], totals[2], totals[3]);
  packed->order = array<std::uint32_t>(static_cast<std::int64_t>(totals[3]), stream);
  cuda::launch(place_slices, count * kPackedLanes, kBlock, stream, count, groups, sorted.as<std::uint32_t>(),
               representative.as<std::uint32_t>(), arrays, packed->slice.as<PackedSlice>(), packed->order.as<std::uint32_t>());
  stream.synchronize();
  return packed;
}

void fill_values(PackedStorage& packed, ConversionInput& input, bool structure) {
  const auto csr = input.csr();
  const std::int64_t groups = packed.shape.groups(packed.rows);
  dispatch(packed.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Arrays<T> to{packed.slice.as<PackedSlice>(), packed.order.as<std::uint32_t>(), packed.deltas.as<std::int32_t>(),
                       packed.indices.as<char>(), packed.values.as<T>()};
    with_shape(packed.shape, [&](auto rows, auto width) {
      cuda::launch(fill_slices<T, rows, width>, packed.slices * kPackedLanes, kBlock, input.stream(), source_of(*csr),
                   csr->values.as<T>(), packed.shape, groups, packed.slices, to, structure);
    });
  });
  input.stream().synchronize();
}

}  // namespace

const Builder cuda_builder{analyse, fill_values};

}  // namespace shardmat::packed
