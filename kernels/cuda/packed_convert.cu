// Conversion to packed rows on the device, from CSR there: groups counted by a thread each, sorted, slices analysed and
// filled by a warp each.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <bit>

#include "kernels/cuda/cub_scratch.h"
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

__global__ void key_groups(Matrix a, PackedShape shape, std::int64_t window, std::int64_t groups, std::uint64_t* keys,
                           std::uint32_t* ids) {
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (group >= groups) return;
  keys[group] = sort_key(a, shape, group, window);
  ids[group] = static_cast<std::uint32_t>(group);
}

/// The lanes of a warp that build one slice, a lane a group. A warp builds L slices side by side.
template <int L>
struct Team {
  static constexpr int kGroups = kPackedLanes / L;
  std::int64_t slice, step;  ///< the first to build, and how far the next is
  int first, lane;           ///< lanes of the warp: the team's first, and this one counted from there
  unsigned mask;
  bool working;  ///< this lane belongs to a team

  __device__ Team() {
    const std::int64_t warp = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kPackedLanes;
    const int in_warp = static_cast<int>(threadIdx.x) % kPackedLanes;
    const int team = in_warp / kGroups;
    slice = warp * L + team;
    step = static_cast<std::int64_t>(gridDim.x) * (kBlock / kPackedLanes) * L;
    first = team * kGroups, lane = in_warp - first;
    working = team < L;
    mask = (kGroups == kPackedLanes ? kAll : (1u << kGroups) - 1) << first;
  }
  __device__ bool any(bool value) const { return __any_sync(mask, value); }
  __device__ bool all(bool value) const { return __all_sync(mask, value); }
  template <class V>
  __device__ V of(int other, V value) const {
    return __shfl_sync(mask, value, first + other);
  }
  __device__ int min(int value) const {
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(mask, value);
#else
    int least = value;
    for (int other = 0; other < kGroups; ++other) least = ::min(least, of(other, value));
    return least;
#endif
  }
  __device__ int max(int value) const { return -1 - min(-1 - value); }
};

/// What all lanes of a team agree on about one slot of P pieces a group.
template <int P>
struct Slot {
  PackedSlotKind kind;
  int base;      ///< smallest first column
  int delta[P];  ///< first column less first row, of the first group
};

/// `start` are the first columns of this group's pieces, or -1.
template <int P, int L>
__device__ Slot<P> classify(const Team<L>& team, const int (&start)[P], std::int64_t row, bool real) {
  Slot<P> slot;
  int low = INT_MAX, high = INT_MIN;
  bool same = true;
  for (int p = 0; p < P; ++p) {
    const int delta = static_cast<int>(start[p] - row);
    slot.delta[p] = team.of(0, delta);
    same = same && start[p] >= 0 && delta == slot.delta[p];
    if (start[p] >= 0) low = min(low, start[p]), high = max(high, start[p]);
  }
  slot.base = team.min(low);
  slot.kind = team.all(!real || same) ? kSharedSlot : team.max(high) - slot.base <= 0xffff ? kNarrowSlot : kFullSlot;
  return slot;
}

/// Visits the slots of a slice: visit(slot, starts, reader) with the reader before the slot's first piece; it must take them
/// all. `all_shared`: known before.
template <class S, class Visit>
__device__ void for_each_slot(const Matrix& a, std::int64_t row, const Team<S::L>& team, bool real, bool all_shared,
                              const Visit& visit) {
  PieceReader<S::B, std::int32_t> reader(a, real ? row : a.rows);
  while (true) {
    int start[S::kPieces] = {static_cast<int>(reader.find())};
    if (!team.any(start[0] >= 0)) return;
    auto ahead = reader;
    for (int p = 1; p < S::kPieces; ++p) {
      if (start[p - 1] >= 0) ahead.skip(start[p - 1]);
      start[p] = start[p - 1] >= 0 ? static_cast<int>(ahead.find()) : -1;
    }
    Slot<S::kPieces> slot{kSharedSlot, 0, {}};
    if (all_shared)
      for (int p = 0; p < S::kPieces; ++p) slot.delta[p] = static_cast<int>(start[p] - row);
    else slot = classify(team, start, row, real);
    visit(slot, start, reader);
  }
}

struct SizeArrays {
  std::uint64_t *value_units, *index_units, *deltas, *order, *hash[2];
};

/// Counts the slots of a team's slice and decides how it is stored.
template <class S>
__device__ void analyse_slice(const Matrix& a, int shift, int value_bytes, std::int64_t groups,
                              const std::uint32_t* __restrict__ order, PackedSlice* slices, const SizeArrays& sizes,
                              const Team<S::L>& team) {
  const bool real = team.slice * S::kGroups + team.lane < groups;
  const std::uint32_t group = order[min(team.slice * S::kGroups + team.lane, groups - 1)];
  const std::int64_t row = static_cast<std::int64_t>(group) * S::B - shift;
  SlotCounts<S> counts;
  std::uint64_t hash[2] = {1, 2};
  for_each_slot<S>(a, row, team, real, false, [&](const auto& slot, const auto& start, auto& reader) {
    for (const int first : start)
      if (first >= 0) reader.skip(first);
    ++counts.of[slot.kind];
    if (slot.kind == kSharedSlot)
      for (const int delta : slot.delta) fold_delta(hash, delta);
  });
  const std::int64_t begin = max(row, std::int64_t{0}), end = min(row + S::B, a.rows);
  const std::uint64_t mine = real ? a.offset(end) - a.offset(begin) : 0;
  std::uint64_t nnz = 0;
  for (int other = 0; other < S::kGroups; ++other) nnz += team.of(other, mine);
  const std::uint32_t first = team.of(0, group);  // not inside the condition: all lanes must take part
  const bool consecutive = team.all(!real || group == first + team.lane);
  if (team.lane != 0) return;

  const SliceSizes size = slice_sizes(counts, value_bytes, nnz, consecutive, hash);
  PackedSlice& slice = slices[team.slice];
  for (int k = 0; k < kPackedSlotKinds; ++k) slice.slots[k] = size.csr ? 0 : counts.of[k];
  slice.real = static_cast<std::uint8_t>(min(std::int64_t{S::kGroups}, groups - team.slice * S::kGroups));
  slice.consecutive = consecutive;
  slice.csr = size.csr;
  slice.late = 0;
  slice.groups = group;
  sizes.value_units[team.slice] = size.value_units;
  sizes.index_units[team.slice] = size.index_units;
  sizes.deltas[team.slice] = size.deltas;
  sizes.order[team.slice] = size.order;
  // A slice whose deltas nobody may share gets a hash of its own.
  sizes.hash[0][team.slice] = size.hash[0] != 0 ? size.hash[0] : static_cast<std::uint64_t>(team.slice);
  sizes.hash[1][team.slice] = size.hash[0] != 0 ? size.hash[1] : ~static_cast<std::uint64_t>(team.slice);
}

template <class S>
__global__ void analyse_slices(Matrix a, int shift, int value_bytes, std::int64_t groups,
                               const std::uint32_t* __restrict__ order, PackedSlice* slices, SizeArrays sizes,
                               std::int64_t count) {
  Team<S::L> team;
  for (; team.working && team.slice < count; team.slice += team.step)
    analyse_slice<S>(a, shift, value_bytes, groups, order, slices, sizes, team);
}

constexpr int kSizeBits = 32;

/// ids = 0, 1 …; keys sort slices by falling size, if `by_size`, and irregular ones before all others, which are counted.
__global__ void key_slices(std::int64_t count, const PackedSlice* slices, const std::uint64_t* value_units, bool by_size,
                           std::uint64_t* keys, std::uint32_t* ids, unsigned long long* irregular_slices) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  constexpr std::uint64_t kMost = (std::uint64_t{1} << kSizeBits) - 1;
  const bool first = irregular(slices[i]);
  keys[i] = (first ? 0 : kMost + 1) + (by_size ? kMost - min(value_units[i], kMost) : 0);
  ids[i] = static_cast<std::uint32_t>(i);
  if (first) atomicAdd(irregular_slices, 1ull);
}

/// representative[i] = the first slice with the same deltas; the others need no room for theirs.
__global__ void share_deltas(std::int64_t count, const std::uint64_t* sorted, const std::uint32_t* slice_of,
                             const std::uint64_t* second, std::uint32_t* representative, std::uint64_t* deltas) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  std::int64_t low = 0, high = i;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (sorted[middle] < sorted[i]) low = middle + 1;
    else high = middle;
  }
  const std::uint32_t mine = slice_of[i], first = slice_of[low];
  const bool same = second[mine] == second[first];
  representative[mine] = same ? first : mine;
  if (same && mine != first) deltas[mine] = 0;
}

/// Slices in the order `from`, with their sizes.
__global__ void schedule_slices(std::int64_t count, const std::uint32_t* from, const PackedSlice* old_slices,
                                SizeArrays old_sizes, PackedSlice* slices, SizeArrays sizes) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::uint32_t s = from[i];
  slices[i] = old_slices[s];
  sizes.value_units[i] = old_sizes.value_units[s];
  sizes.index_units[i] = old_sizes.index_units[s];
  sizes.deltas[i] = old_sizes.deltas[s];
  sizes.order[i] = old_sizes.order[s];
  for (int h = 0; h < 2; ++h) sizes.hash[h][i] = old_sizes.hash[h][s];
}

__global__ void place_slices(std::int64_t count, int groups_of_slice, std::int64_t groups, const std::uint32_t* origin,
                             const std::uint32_t* __restrict__ sorted, const std::uint32_t* representative, SizeArrays at,
                             PackedSlice* slices, std::uint32_t* order) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  PackedSlice& slice = slices[i];
  slice.values = static_cast<std::uint32_t>(at.value_units[i]);
  slice.indices = static_cast<std::uint32_t>(at.index_units[i]);
  slice.deltas = static_cast<std::uint32_t>(at.deltas[representative[i]]);
  if (slice.consecutive) return;
  slice.groups = static_cast<std::uint32_t>(at.order[i]);
  const std::int64_t first = std::int64_t{origin[i]} * groups_of_slice;
  for (int g = 0; g < groups_of_slice; ++g) order[at.order[i] + g] = sorted[min(first + g, groups - 1)];
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
template <class S, class T>
__device__ void fill_rows(const Matrix& a, const T* from, std::int64_t row, const Team<S::L>& team, const PackedSlice& slice,
                          const Arrays<T>& to, bool structure) {
  auto* columns = reinterpret_cast<std::int32_t*>(to.indices + std::uint64_t{slice.indices} * kPackedUnit);
  T* values = to.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
  std::int32_t* offsets = to.deltas + slice.deltas;
  std::int32_t out = 0;
  for (int owner = 0; owner < S::kGroups; ++owner) {
    const std::int64_t first_row = team.of(owner, row);
    const bool real = owner < slice.real;
    for (int r = 0; r < S::B; ++r) {
      const std::int64_t i = first_row + r;
      const bool inside = real && i >= 0 && i < a.rows;
      const std::int64_t start = inside ? a.offset(i) : 0, end = inside ? a.offset(i + 1) : 0;
      if (structure && team.lane == 0) offsets[owner * S::B + r] = out;
      for (std::int64_t k = start + team.lane; k < end; k += S::kGroups) {
        values[out + (k - start)] = from[k];
        if (structure) columns[out + (k - start)] = a.col_idx[k];
      }
      out += static_cast<std::int32_t>(end - start);
    }
  }
  if (structure && team.lane == 0) offsets[S::kGroups * S::B] = out;
}

/// Writes the slots of a slice.
template <class S, class T>
__device__ void fill_slots(const Matrix& a, const T* from, std::int64_t row, const Team<S::L>& team,
                           const PackedSlice& slice, const Arrays<T>& to, bool structure) {
  constexpr int V = S::template kInterleaved<T>;
  const SlotCounts<S> counts(slice);
  std::int32_t* deltas = to.deltas + slice.deltas;
  char* narrow = to.indices + std::uint64_t{slice.indices} * kPackedUnit;
  auto* full = reinterpret_cast<std::int32_t*>(narrow + counts.narrow_bytes());
  T* values = to.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
  std::uint32_t filled[kPackedSlotKinds] = {0, 0, 0};
  const bool all_shared = counts.of[kNarrowSlot] + counts.of[kFullSlot] == 0;
  for_each_slot<S>(a, row, team, team.lane < slice.real, all_shared, [&](const auto& slot, const auto& start, auto& reader) {
    const std::uint32_t k = filled[slot.kind]++, n = counts.of[slot.kind];
    T* out = values + counts.values(slot.kind);
    for (int p = 0; p < S::kPieces; ++p) {
      const int piece = team.lane * S::kPieces + p;
      const auto put = [&](int j, int r, std::int64_t at) {
        out[interleaved<V>(k, S::value_of(piece, j, r), S::kValues, n)] = at >= 0 ? from[at] : T(0);
      };
      if (start[p] >= 0) reader.take(start[p], put);
      else
        for (int i = 0; i < S::B * S::B; ++i) put(i % S::B, i / S::B, -1);
      if (!structure) continue;
      const int column = start[p] >= 0 ? start[p] : slot.base;
      if (slot.kind == kFullSlot) full[interleaved<V>(k, piece, S::kIndices, n)] = column;
      if (slot.kind == kNarrowSlot) {
        const NarrowPlace place = narrow_place<V>(k, piece, S::kNarrowBytes, n);
        *reinterpret_cast<std::uint16_t*>(narrow + place.column) = static_cast<std::uint16_t>(column - slot.base);
        if (piece == 0) *reinterpret_cast<std::int32_t*>(narrow + place.base) = slot.base;
      }
      if (slot.kind == kSharedSlot && team.lane == 0) deltas[interleaved<V>(k, p, S::kPieces, n)] = slot.delta[p];
    }
  });
}

template <class T, class S>
__global__ void fill_slices(Matrix a, const T* __restrict__ from, int shift, std::int64_t count, Arrays<T> to,
                            bool structure) {
  Team<S::L> team;
  for (; team.working && team.slice < count; team.slice += team.step) {
    const PackedSlice slice = to.slices[team.slice];
    const std::uint32_t group = slice.consecutive ? slice.groups + team.lane : to.order[slice.groups + team.lane];
    const std::int64_t row = static_cast<std::int64_t>(group) * S::B - shift;
    if (slice.csr) fill_rows<S>(a, from, row, team, slice, to, structure);
    else fill_slots<S>(a, from, row, team, slice, to, structure);
  }
}

/// Blocks for a kernel in which a warp builds L slices at once. With node blocks each thread walks along B rows, whose cache
/// lines have to stay in L1 until they are used up: then few blocks on each multiprocessor are faster.
std::int64_t team_blocks(std::int64_t slices, const PackedShape& shape, const Stream& stream) {
  const std::int64_t warps = (slices + shape.lanes - 1) / shape.lanes, all = (warps * kPackedLanes + kBlock - 1) / kBlock;
  return shape.block == 1 ? all : std::min(all, std::int64_t{6} / shape.block * properties(stream.device()).multiprocessors);
}

template <class T>
Buffer array(std::int64_t count, Stream& stream) {
  return Buffer(stream.device(), static_cast<std::size_t>(count) * sizeof(T));
}

/// Sorts 64-bit keys of `bits` bits with their 32-bit items, stable.
void sort_pairs(const Buffer& keys, const Buffer& sorted_keys, const Buffer& items, const Buffer& sorted_items,
                std::int64_t count, int bits, Stream& stream) {
  cuda::with_scratch(stream, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys.as<std::uint64_t>(), sorted_keys.as<std::uint64_t>(),
                                           items.as<std::uint32_t>(), sorted_items.as<std::uint32_t>(), count, 0, bits,
                                           stream.native());
  });
}

/// Exclusive sums in place; returns the total. `sizes` has one entry more than is counted.
std::uint64_t sum_up(const Buffer& sizes, std::int64_t count, Stream& stream) {
  fill_bytes(sizes.as<std::uint64_t>() + count, 0, sizeof(std::uint64_t), stream);
  cuda::with_scratch(stream, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, sizes.as<std::uint64_t>(), sizes.as<std::uint64_t>(), count + 1,
                                         stream.native());
  });
  std::uint64_t total = 0;
  copy_to_host(&total, sizes.as<std::uint64_t>() + count, sizeof total, stream);
  return total;
}

/// Groups in the order in which slices take them.
Buffer order_groups(const Matrix& a, const PackedShape& shape, std::int64_t groups, Stream& stream) {
  Buffer keys = array<std::uint64_t>(groups, stream), sorted_keys = array<std::uint64_t>(groups, stream);
  Buffer ids = array<std::uint32_t>(groups, stream), sorted = array<std::uint32_t>(groups, stream);
  cuda::launch(key_groups, groups, kBlock, stream, a, shape, window_of(shape), groups, keys.as<std::uint64_t>(),
               ids.as<std::uint32_t>());
  if (shape.window <= shape.groups_of_slice()) {
    stream.synchronize();
    return ids;
  }
  const int window_bits = std::bit_width(static_cast<std::uint64_t>(groups / window_of(shape)));
  sort_pairs(keys, sorted_keys, ids, sorted, groups, 32 + window_bits, stream);
  return sorted;
}

/// The sizes of slices, each array with one entry more for the sum.
struct SizeBuffers {
  Buffer of[6];
  SizeBuffers(std::int64_t count, Stream& stream) {
    for (Buffer& size : of) size = array<std::uint64_t>(count + 1, stream);
  }
  std::uint64_t* at(int k) const { return of[k].as<std::uint64_t>(); }
  SizeArrays arrays() const { return {at(0), at(1), at(2), at(3), {at(4), at(5)}}; }
};

std::shared_ptr<PackedStorage> analyse(ConversionInput& input, const PackedShape& shape) {
  const auto csr = input.csr();
  const Matrix a = source_of(*csr);
  Stream& stream = input.stream();
  auto packed = std::make_shared<PackedStorage>();
  packed->shape = shape;
  const std::int64_t groups = shape.groups(a.rows), count = packed->slices = shape.slices(a.rows);
  if (groups == 0) {
    packed->set_sizes(input, 0, 0, 0, 0);
    return packed;
  }
  const Buffer sorted = order_groups(a, shape, groups, stream);
  const Buffer draft = array<PackedSlice>(count, stream);
  const SizeBuffers draft_sizes(count, stream), sizes(count, stream);
  with_shape(shape, [&](auto tag) {
    cuda::launch_blocks(analyse_slices<decltype(tag)>, team_blocks(count, shape, stream), kBlock, 0, stream, a, shape.shift,
                        static_cast<int>(input.value_bytes()), groups, sorted.as<std::uint32_t>(), draft.as<PackedSlice>(),
                        draft_sizes.arrays(), count);
  });

  const Buffer keys = array<std::uint64_t>(count, stream), sorted_keys = array<std::uint64_t>(count, stream),
               ids = array<std::uint32_t>(count, stream), in_order = array<std::uint32_t>(count, stream);
  const bool by_size = longest_first(a.rows, a.cols, input.value_bytes());
  const Buffer irregular_slices = array<unsigned long long>(1, stream);
  fill_bytes(irregular_slices.data(), 0, irregular_slices.bytes(), stream);
  cuda::launch(key_slices, count, kBlock, stream, count, draft.as<PackedSlice>(), draft_sizes.at(0), by_size,
               keys.as<std::uint64_t>(), ids.as<std::uint32_t>(), irregular_slices.as<unsigned long long>());
  unsigned long long irregular_count = 0;
  copy_to_host(&irregular_count, irregular_slices.data(), sizeof irregular_count, stream);
  const bool split = irregular_first(static_cast<std::int64_t>(irregular_count), count);
  if (split || by_size) sort_pairs(keys, sorted_keys, ids, in_order, count, kSizeBits + (split ? 1 : 0), stream);
  const Buffer& origin = split || by_size ? in_order : ids;
  packed->slice = array<PackedSlice>(count, stream);
  cuda::launch(schedule_slices, count, kBlock, stream, count, origin.as<std::uint32_t>(), draft.as<PackedSlice>(),
               draft_sizes.arrays(), packed->slice.as<PackedSlice>(), sizes.arrays());

  const Buffer with_hash = array<std::uint32_t>(count, stream), representative = array<std::uint32_t>(count, stream);
  sort_pairs(sizes.of[4], sorted_keys, ids, with_hash, count, 64, stream);
  cuda::launch(share_deltas, count, kBlock, stream, count, sorted_keys.as<std::uint64_t>(), with_hash.as<std::uint32_t>(),
               sizes.at(5), representative.as<std::uint32_t>(), sizes.at(2));
  std::uint64_t totals[4];
  for (int k = 0; k < 4; ++k) totals[k] = sum_up(sizes.of[k], count, stream);
  packed->set_sizes(input, totals[0], totals[1], totals[2], totals[3]);
  packed->order = array<std::uint32_t>(static_cast<std::int64_t>(totals[3]), stream);
  cuda::launch(place_slices, count, kBlock, stream, count, shape.groups_of_slice(), groups, origin.as<std::uint32_t>(),
               sorted.as<std::uint32_t>(), representative.as<std::uint32_t>(), sizes.arrays(),
               packed->slice.as<PackedSlice>(), packed->order.as<std::uint32_t>());
  stream.synchronize();
  return packed;
}

void fill_values(PackedStorage& packed, ConversionInput& input, bool structure) {
  const auto csr = input.csr();
  dispatch(packed.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Arrays<T> to{packed.slice.as<PackedSlice>(), packed.order.as<std::uint32_t>(), packed.deltas.as<std::int32_t>(),
                       packed.indices.as<char>(), packed.values.as<T>()};
    with_shape(packed.shape, [&](auto shape) {
      cuda::launch_blocks(fill_slices<T, decltype(shape)>, team_blocks(packed.slices, packed.shape, input.stream()), kBlock,
                          0, input.stream(), source_of(*csr), csr->values.as<T>(), packed.shape.shift, packed.slices, to,
                          structure);
    });
  });
  input.stream().synchronize();
}

}  // namespace

const Builder cuda_builder{analyse, fill_values};

}  // namespace shardmat::packed
