// The column of each place of packed rows. A warp a slice; neighbouring lanes write neighbouring places.
#include "kernels/base/types.h"
#include "kernels/cuda/launch.h"
#include "kernels/formats/packed_build.h"
#include "kernels/formats/packed_pieces.h"

namespace shardmat::packed {
namespace {

constexpr int kThreadsOfSlices = 256;

struct Structure {
  const PackedSlice* slices;
  const std::uint32_t* order;
  const std::int32_t* deltas;
  const char* indices;
  std::int64_t count;
  int shift;
};

/// First column of piece i (counted over the groups) in slot k of its kind.
template <class S, int V>
__device__ std::int32_t start_of(const Structure& a, const PackedSlice& slice, const SlotCounts<S>& counts, int kind,
                                 std::uint32_t k, int i) {
  const std::uint32_t n = counts.of[kind];
  const char* const narrow = a.indices + std::uint64_t{slice.indices} * kPackedUnit;
  if (kind == kNarrowSlot) {
    const NarrowPlace place = narrow_place<V>(k, i, S::kNarrowBytes, n);
    return *reinterpret_cast<const std::int32_t*>(narrow + place.base) +
           *reinterpret_cast<const std::uint16_t*>(narrow + place.column);
  }
  if (kind == kFullSlot)
    return reinterpret_cast<const std::int32_t*>(narrow + counts.narrow_bytes())[interleaved<V>(k, i, S::kIndices, n)];
  const int group = i / S::kPieces;
  if (group >= slice.real) return 0;
  const std::int64_t number = slice.consecutive ? slice.groups + group : a.order[slice.groups + group];
  return static_cast<std::int32_t>(number * S::B - a.shift) +
         a.deltas[slice.deltas + interleaved<V>(k, i % S::kPieces, S::kPieces, n)];
}

template <class T, class S>
__global__ void write_columns(Structure a, std::int32_t* to) {
  constexpr int V = S::template kInterleaved<T>;
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kPackedLanes;
  if (i >= a.count) return;
  const int lane = static_cast<int>(threadIdx.x) % kPackedLanes;
  const PackedSlice slice = a.slices[i];
  to += std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
  if (slice.csr) {
    const auto* columns = reinterpret_cast<const std::int32_t*>(a.indices + std::uint64_t{slice.indices} * kPackedUnit);
    const std::int32_t nonzeros = a.deltas[slice.deltas + S::kGroups * S::B];
    for (std::int32_t k = lane; k < nonzeros; k += kPackedLanes) to[k] = columns[k];
    return;
  }
  const SlotCounts<S> counts(slice);
  for (int kind = 0; kind < kPackedSlotKinds; ++kind) {
    std::int32_t* const out = to + counts.values(kind);
    for (std::uint32_t k = 0; k < counts.of[kind]; ++k)
      for (int value = lane; value < S::kValues; value += kPackedLanes) {  // S::value_of() the other way round
        const int of_slot = value % S::kLanes, of_lane = value / S::kLanes;
        const int column = of_slot % S::kLanesOfPiece * S::kColumns + of_lane / S::B;
        out[interleaved<V>(k, value, S::kValues, counts.of[kind])] =
            start_of<S, V>(a, slice, counts, kind, k, of_slot / S::kLanesOfPiece) + column;
      }
  }
}

}  // namespace

void find_columns(const PackedStorage& packed, std::int32_t* to, Stream& stream) {
  const Structure a{packed.slice.as<PackedSlice>(),
                    packed.order.as<std::uint32_t>(),
                    packed.deltas.as<std::int32_t>(),
                    packed.indices.as<char>(),
                    packed.slices,
                    packed.shape.shift};
  dispatch(packed.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    with_shape(packed.shape, [&](auto shape) {
      cuda::launch(write_columns<T, decltype(shape)>, packed.slices * kPackedLanes, kThreadsOfSlices, stream, a, to);
    });
  });
}

}  // namespace shardmat::packed
