// Conversion to column tiers on the device, from CSR there. A warp takes a row: lane t counts its nonzeros in tier t, and
// the lane after the last tier those of the rest.
#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/tiers_build.h"
#include "kernels/formats/upload.h"
#include "kernels/typed_plan.h"

namespace shardmat::tiers {
namespace {

constexpr int kBlock = 256, kLanes = kTierLanes;
constexpr unsigned kAllLanes = 0xffffffffu;

/// CSR on the device, and the place of each column: tier · 2^16 + place from 1, or the number of tiers · 2^16.
struct Matrix {
  const std::int32_t* narrow;
  const std::int64_t* wide;
  const std::int32_t* col_idx;
  const std::int32_t* places;
  std::int64_t rows;
  int tiers, least;

  __device__ std::int64_t begin(std::int64_t row) const { return wide != nullptr ? wide[row] : narrow[row]; }
  __device__ int tier(std::int64_t k) const { return places[col_idx[k]] >> 16; }
};

Matrix matrix_of(ConversionInput& input, const Buffer& places, const TiersPattern& p) {
  const CsrStorage& csr = *input.csr();
  return {csr.wide_offsets ? nullptr : csr.row_ptr.as<std::int32_t>(),
          csr.wide_offsets ? csr.row_ptr.as<std::int64_t>() : nullptr,
          csr.col_idx.as<std::int32_t>(),
          places.as<std::int32_t>(),
          csr.rows,
          p.tiers(),
          p.least};
}

__global__ void count_nonzeros(std::int64_t nnz, const std::int32_t* __restrict__ col_idx,
                               std::int32_t* __restrict__ counts) {
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < nnz) atomicAdd(counts + col_idx[k], 1);
}

std::vector<std::int32_t> count_columns(ConversionInput& input) {
  Stream& stream = input.stream();
  const CsrStorage& csr = *input.csr();
  const Buffer counts(stream.device(), static_cast<std::size_t>(csr.cols) * sizeof(std::int32_t));
  fill_bytes(counts.data(), 0, counts.bytes(), stream);
  cuda::launch(count_nonzeros, csr.nnz, kBlock, stream, csr.nnz, csr.col_idx.as<std::int32_t>(), counts.as<std::int32_t>());
  std::vector<std::int32_t> result = download<std::int32_t>(counts, stream);
  stream.synchronize();
  return result;
}

__global__ void set_places(std::int64_t count, std::int32_t value, const std::int32_t* __restrict__ columns,
                           std::int32_t* __restrict__ places) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (columns == nullptr) places[i] = value;
  else places[columns[i]] = value + static_cast<std::int32_t>(i) + 1;
}

Buffer places_of(std::int64_t cols, const TiersPattern& p, Stream& stream) {
  Buffer places(stream.device(), static_cast<std::size_t>(cols) * sizeof(std::int32_t));
  const auto set = [&](std::int64_t count, int tier, const std::int32_t* columns) {
    cuda::launch(set_places, count, kBlock, stream, count, tier << 16, columns, places.as<std::int32_t>());
  };
  set(cols, p.tiers(), nullptr);
  for (int t = 0; t < p.tiers(); ++t) {
    const std::int64_t first = p.first_column[static_cast<std::size_t>(t)];
    set(p.first_column[static_cast<std::size_t>(t) + 1] - first, t, p.columns.as<std::int32_t>() + first);
  }
  return places;
}

/// Calls visit(first nonzero, number of nonzeros, their tiers) for every 32 nonzeros of a row, or fewer. Each lane has the
/// tier of its nonzero, or -1.
template <class Visit>
__device__ void for_nonzeros(const Matrix& a, std::int64_t row, int lane, const Visit& visit) {
  constexpr int kAtOnce = 4;  // long rows would wait for each load
  const std::int64_t end = a.begin(row + 1);
  for (std::int64_t k = a.begin(row); k < end; k += kAtOnce * kLanes) {
    int tier[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) tier[u] = k + u * kLanes + lane < end ? a.tier(k + u * kLanes + lane) : -1;
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u)
      if (k + u * kLanes < end) visit(k + u * kLanes + lane, tier[u]);
  }
}

/// How the nonzeros of a row divide: lane t has the number in tier t.
struct RowCut {
  std::int32_t count;
  bool kept;  ///< else these nonzeros are counted for the rest
  PieceCut pieces;

  __device__ RowCut(const Matrix& a, std::int64_t row, int lane) : count(0) {
    for_nonzeros(a, row, lane, [&](std::int64_t, int tier) {
      for (int t = 0; t <= a.tiers; ++t) {
        const int here = __popc(__ballot_sync(kAllLanes, tier == t));
        if (lane == t) count += here;
      }
    });
    kept = lane >= a.tiers || count >= a.least;
    const auto dropped = static_cast<std::int32_t>(__reduce_add_sync(kAllLanes, kept ? 0u : static_cast<unsigned>(count)));
    if (!kept) count = 0;
    if (lane == a.tiers) count += dropped;
    pieces = cut_into_pieces(count);
  }
  /// Pieces of the lanes below.
  __device__ std::int32_t pieces_before(int lane) const {
    std::int32_t sum = pieces.pieces;
#pragma unroll
    for (int offset = 1; offset < kLanes; offset *= 2) {
      const std::int32_t other = __shfl_up_sync(kAllLanes, sum, offset);
      if (lane >= offset) sum += other;
    }
    return sum - pieces.pieces;
  }
};

__device__ inline std::int64_t row_of_warp() {
  return (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
}

/// first_piece[row + 1] = pieces of the row.
__global__ void count_pieces(Matrix a, std::int32_t* __restrict__ first_piece) {
  const std::int64_t row = row_of_warp();
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  if (row >= a.rows) return;
  const RowCut cut(a, row, lane);
  const unsigned pieces = __reduce_add_sync(kAllLanes, static_cast<unsigned>(cut.pieces.pieces));
  if (lane == 0) first_piece[row + 1] = static_cast<std::int32_t>(pieces);
}

__global__ void write_classes(Matrix a, const std::int32_t* __restrict__ first_piece, std::uint16_t* __restrict__ classes,
                              std::int32_t* __restrict__ counts) {
  const std::int64_t row = row_of_warp();
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  if (row >= a.rows) return;
  const RowCut cut(a, row, lane);
  const std::int32_t first = first_piece[row] + cut.pieces_before(lane);
  for (std::int32_t i = 0; i < cut.pieces.pieces; ++i) {
    const int c = class_of_piece(lane, min(cut.pieces.length, cut.count - i * cut.pieces.length));
    classes[first + i] = static_cast<std::uint16_t>(c);
    atomicAdd(counts + c, 1);
  }
}

constexpr int kScanBlock = 1024, kScanItems = 8;

/// Replaces each number by the sum up to it. One block: this is a small part of a conversion, and CUB's scan takes longer to
/// compile than all the rest here.
__global__ void __launch_bounds__(kScanBlock) scan_numbers(std::int64_t count, std::int32_t* __restrict__ numbers) {
  __shared__ std::int32_t of_warp[kLanes];
  const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes;
  const auto scan_lanes = [&](std::int32_t sum) {
#pragma unroll
    for (int offset = 1; offset < kLanes; offset *= 2) {
      const std::int32_t other = __shfl_up_sync(kAllLanes, sum, offset);
      if (lane >= offset) sum += other;
    }
    return sum;
  };
  std::int32_t before = 0;  // the sum of all numbers before those of this step
  for (std::int64_t step = 0; step < count; step += kScanBlock * kScanItems) {
    const std::int64_t first = step + static_cast<std::int64_t>(threadIdx.x) * kScanItems;
    std::int32_t number[kScanItems], sum = 0;
#pragma unroll
    for (int i = 0; i < kScanItems; ++i) {
      number[i] = first + i < count ? numbers[first + i] : 0;
      sum += number[i];
    }
    const std::int32_t up_to = scan_lanes(sum);
    if (lane == kLanes - 1) of_warp[warp] = up_to;
    __syncthreads();
    if (warp == 0) of_warp[lane] = scan_lanes(of_warp[lane]);
    __syncthreads();
    std::int32_t next = before + up_to - sum + (warp > 0 ? of_warp[warp - 1] : 0);
#pragma unroll
    for (int i = 0; i < kScanItems; ++i) {
      next += number[i];
      if (first + i < count) numbers[first + i] = next;
    }
    before += of_warp[kLanes - 1];
    __syncthreads();
  }
}

/// Replaces counts, from the second entry on, by sums over all before.
void scan(const Buffer& buffer, std::int64_t count, Stream& stream) {
  if (count > 0) cuda::launch_blocks(scan_numbers, 1, kScanBlock, 0, stream, count, buffer.as<std::int32_t>() + 1);
}

Buffer ints(std::int64_t count, Stream& stream) {
  Buffer buffer(stream.device(), static_cast<std::size_t>(count) * sizeof(std::int32_t));
  fill_bytes(buffer.data(), 0, buffer.bytes(), stream);
  return buffer;
}

Buffer classify_pieces(ConversionInput& input, TiersPattern& p, std::vector<std::int32_t>& counts) {
  Stream& stream = input.stream();
  const Buffer places = places_of(input.matrix().cols, p, stream);
  const Matrix a = matrix_of(input, places, p);
  p.first_piece = ints(a.rows + 1, stream);
  cuda::launch(count_pieces, a.rows * kLanes, kBlock, stream, a, p.first_piece.as<std::int32_t>());
  scan(p.first_piece, a.rows, stream);
  std::int32_t pieces = 0;
  copy_to_host(&pieces, p.first_piece.as<std::int32_t>() + a.rows, sizeof(pieces), stream);
  stream.synchronize();
  Buffer classes(stream.device(), static_cast<std::size_t>(pieces) * sizeof(std::uint16_t));
  const Buffer on_device = ints(std::ssize(counts), stream);
  cuda::launch(write_classes, a.rows * kLanes, kBlock, stream, a, p.first_piece.as<std::int32_t>(),
               classes.as<std::uint16_t>(), on_device.as<std::int32_t>());
  counts = download<std::int32_t>(on_device, stream);
  stream.synchronize();
  return classes;
}

// Pieces of a class keep their order: a stable counting sort, in which a warp takes a chunk of pieces.

constexpr int kChunk = 4096;

/// Calls visit(piece, class, lanes with the same class) for 32 pieces at once.
template <class Visit>
__device__ void for_pieces(std::int64_t pieces, const std::uint16_t* __restrict__ classes, const Visit& visit) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kChunk, end = min(pieces, begin + kChunk);
  for (std::int64_t i = begin; i < end; i += kLanes) {
    const std::int64_t piece = i + threadIdx.x;
    const int c = piece < end ? classes[piece] : -1;
    visit(piece, c, __match_any_sync(kAllLanes, c));
    __syncwarp();
  }
}

/// First table[c · chunks + chunk + 1] = pieces of class c in the chunk. With `place`, table[c · chunks + chunk] + shift[c]
/// is the place of the first of them.
__global__ void sort_chunks(std::int64_t pieces, const std::uint16_t* __restrict__ classes, int class_count, bool place,
                            const std::int32_t* __restrict__ shift, std::int32_t* __restrict__ table,
                            std::int32_t* __restrict__ places) {
  extern __shared__ std::int32_t next[];
  const auto lane = static_cast<int>(threadIdx.x);
  const auto entry = [&](int c) { return static_cast<std::int64_t>(c) * gridDim.x + blockIdx.x; };
  for (int c = lane; c < class_count; c += kLanes) next[c] = place ? table[entry(c)] + shift[c] : 0;
  __syncwarp();
  for_pieces(pieces, classes, [&](std::int64_t piece, int c, unsigned same) {
    const int before = __popc(same & ((1u << lane) - 1));
    if (c >= 0 && place) places[next[c] + before] = static_cast<std::int32_t>(piece);
    __syncwarp();
    if (c >= 0 && before == 0) next[c] += __popc(same);
  });
  __syncwarp();
  if (place) return;
  for (int c = lane; c < class_count; c += kLanes) table[entry(c) + 1] = next[c];
}

void place_pieces(const Buffer& classes, const std::vector<std::int32_t>& counts, const std::vector<std::int32_t>& first,
                  TiersPattern& p, Stream& stream) {
  const std::int64_t chunks = (p.pieces + kChunk - 1) / kChunk, count = std::ssize(first);
  if (chunks == 0) return;
  const Buffer table = ints(chunks * count + 1, stream);
  std::vector<std::int32_t> gaps;  // between tiers, which the table does not count
  std::int32_t before = 0;
  for (std::size_t c = 0; c < first.size(); before += counts[c++]) gaps.push_back(first[c] - before);
  const Buffer shift = upload(gaps, stream);
  const auto pass = [&](bool place) {
    cuda::launch_blocks(sort_chunks, chunks, kLanes, static_cast<std::size_t>(count) * sizeof(std::int32_t), stream,
                        p.pieces, classes.as<std::uint16_t>(), static_cast<int>(count), place, shift.as<std::int32_t>(),
                        table.as<std::int32_t>(), p.piece.as<std::int32_t>());
  };
  pass(false);
  scan(table, chunks * count, stream);
  pass(true);
  stream.synchronize();
}

__global__ void invert(std::int64_t count, const std::int32_t* __restrict__ piece, std::int32_t* __restrict__ place_of) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count && piece[i] >= 0) place_of[piece[i]] = static_cast<std::int32_t>(i);
}

/// What fill_rows() reads and writes.
template <class T>
struct Slots {
  const std::int32_t* __restrict__ first_piece;
  const std::int32_t* __restrict__ place_of;       ///< of each piece
  const std::uint32_t* __restrict__ first_bundle;  ///< of each slice
  std::int64_t before_rest;
  const T* __restrict__ csr_values;
  T* __restrict__ values;
  bool structure;  ///< else only values
  std::uint16_t* __restrict__ local;
  std::int32_t* __restrict__ rest_columns;
  std::int32_t* __restrict__ rows;  ///< of each place
};

template <class T>
__global__ void fill_rows(Matrix a, Slots<T> s) {
  const std::int64_t row = row_of_warp();
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  if (row >= a.rows) return;
  const RowCut cut(a, row, lane);
  const std::int32_t first = s.first_piece[row] + cut.pieces_before(lane);
  const unsigned kept = __ballot_sync(kAllLanes, cut.kept);
  std::int32_t seen = 0;  // in lane t: nonzeros of tier t before
  for_nonzeros(a, row, lane, [&](std::int64_t k, int of_column) {
    const int tier = of_column < 0 || kept >> of_column & 1 ? of_column : a.tiers;
    std::int32_t nonzero = 0;
    for (int t = 0; t <= a.tiers; ++t) {
      const unsigned same = __ballot_sync(kAllLanes, tier == t);
      const std::int32_t before = __shfl_sync(kAllLanes, seen, t);
      if (tier == t) nonzero = before + __popc(same & ((1u << lane) - 1));
      if (lane == t) seen += __popc(same);
    }
    const std::int32_t length = __shfl_sync(kAllLanes, cut.pieces.length, max(tier, 0));
    const std::int32_t first_of_tier = __shfl_sync(kAllLanes, first, max(tier, 0));
    if (tier < 0) return;
    const std::int32_t place = s.place_of[first_of_tier + nonzero / length];
    const std::int64_t to = slot_of(s.first_bundle[place / kLanes], place, nonzero % length);
    s.values[to] = s.csr_values[k];
    if (!s.structure) return;
    if (nonzero % length == 0) s.rows[place] = static_cast<std::int32_t>(row);
    if (to >= s.before_rest) s.rest_columns[to - s.before_rest] = a.col_idx[k];
    else s.local[to] = static_cast<std::uint16_t>(a.places[a.col_idx[k]] & 0xffff);
  });
}

void fill(TiersStorage& a, ConversionInput& input, bool structure) {
  Stream& stream = input.stream();
  const TiersPattern& p = *a.pattern;
  const Buffer places = places_of(input.matrix().cols, p, stream), place_of = ints(p.pieces, stream);
  const Buffer first_bundle = upload(p.first_bundle, stream);
  const Matrix matrix = matrix_of(input, places, p);
  cuda::launch(invert, p.slices() * kLanes, kBlock, stream, p.slices() * kLanes, p.piece.as<std::int32_t>(),
               place_of.as<std::int32_t>());
  dispatch(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    cuda::launch(
        fill_rows<T>, matrix.rows * kLanes, kBlock, stream, matrix,
        Slots<T>{p.first_piece.as<std::int32_t>(), place_of.as<std::int32_t>(), first_bundle.as<std::uint32_t>(),
                 p.bundles_of_tiers() * kLanes * kSlotsOfBundle, input.csr()->values.as<T>(), a.values.as<T>(), structure,
                 a.local.as<std::uint16_t>(), a.rest_columns.as<std::int32_t>(), a.slot_rows.as<std::int32_t>()});
  });
  stream.synchronize();
}

}  // namespace

const Builder cuda_builder{count_columns, classify_pieces, place_pieces, fill};

}  // namespace shardmat::tiers
