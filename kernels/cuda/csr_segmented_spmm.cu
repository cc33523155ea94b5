// csr_segmented.cu for few right-hand sides: those that fill at most 32 bytes of a row of X. A warp stages a chunk of the
// matrix in shared memory; then each lane has 8 neighbouring nonzeros and gathers their rows of X. Products are rounded and
// added in the order of csr_segmented.cu with one step a chunk, so a column has the bits of a product with one right-hand
// side.
//
// With hub_kb > 0 the rows of X that most nonzeros ask for are copied to shared memory once a block (hubs.h).
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/cuda/cache_hints.h"
#include "kernels/cuda/hubs.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/row_major_plan.h"
#include "kernels/cuda/segment_sums.h"
#include "kernels/cuda/segments.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/csr_spmm.h"

namespace shardmat {
namespace {

using dense::Wide;

constexpr int kItems = 8, kChunk = 32 * kItems;
constexpr int kRowBytes = 32;  ///< of X, at most
constexpr int kPlainBlock = 256;
constexpr int kPlaces = 32 * (kItems + 1);  ///< of a chunk in shared memory: one between lanes against bank conflicts
/// Threads of a block with hubs, as registers allow. There is one block an SM, so that an SM holds the hubs once.
constexpr int hub_block(int row_bytes) { return row_bytes > 16 ? 384 : 512; }
template <class Row>
constexpr int kHubBlock = hub_block(sizeof(Row));

/// Shared memory of a warp for its chunk.
template <class T>
constexpr int kStageBytes = (static_cast<int>(sizeof(T)) + 4) * kPlaces;

/// The matrix as the kernel sees it.
struct Sequence {
  std::int64_t nnz, chunks;
  int hubs;
  const std::uint8_t* __restrict__ flags;
  const std::int32_t* __restrict__ begun;
  const std::int32_t* __restrict__ rows;
  const std::int32_t* __restrict__ col_idx;  ///< a hub as the complement of its place in hub_columns
  const std::int32_t* __restrict__ hub_columns;
};

/// What a lane loads at once of a row of X with W columns.
template <class T, int W>
constexpr int kAtOnce = std::min(W, dense::kWidth<T>);

template <class T, int W>
__device__ Wide<T, W> load_row(const char* at) {
  using Piece = Wide<T, kAtOnce<T, W>>;
  Wide<T, W> row;
#pragma unroll
  for (int p = 0; p < W / kAtOnce<T, W>; ++p)
    reinterpret_cast<Piece*>(&row)[p] = dense::load<Piece>(at + p * static_cast<int>(sizeof(Piece)));
  return row;
}
template <class T, int W>
__device__ Wide<T, W> load_row_or_hub(bool is_hub, unsigned hub, const char* at) {
  using Piece = Wide<T, kAtOnce<T, W>>;
  Wide<T, W> row;
#pragma unroll
  for (int p = 0; p < W / kAtOnce<T, W>; ++p) {
    constexpr int kBytes = static_cast<int>(sizeof(Piece));
    reinterpret_cast<Piece*>(&row)[p] = dense::load_either<Piece>(is_hub, hub + p * kBytes, at + p * kBytes);
  }
  return row;
}
template <class T, int W>
__device__ void store_row(char* at, const Wide<T, W>& row) {
  using Piece = Wide<T, kAtOnce<T, W>>;
#pragma unroll
  for (int p = 0; p < W / kAtOnce<T, W>; ++p) reinterpret_cast<Piece*>(at)[p] = reinterpret_cast<const Piece*>(&row)[p];
}

/// A lane's nonzeros of a chunk, by way of shared memory, where `stage` is the warp's.
template <class T>
struct Nonzeros {
  std::int32_t column[kItems];
  T value[kItems];

  __device__ Nonzeros(int lane, int count, const std::int32_t* __restrict__ of_column, const T* __restrict__ of_value,
                      char* stage) {
    const cuda::Loads<cuda::kKeepX> loads;
    T* const values = reinterpret_cast<T*>(stage);
    auto* const columns = reinterpret_cast<std::int32_t*>(values + kPlaces);
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      const bool inside = u * 32 + lane < count;
      column[u] = inside ? loads.matrix(of_column + u * 32 + lane) : 0;
      value[u] = inside ? loads.matrix(of_value + u * 32 + lane) : T(0);
    }
    __syncwarp();  // the chunk before has been read
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      const int place = u * 32 + lane + (u * 32 + lane) / kItems;
      columns[place] = column[u], values[place] = value[u];
    }
    __syncwarp();
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      const int place = lane * (kItems + 1) + u;
      column[u] = columns[place], value[u] = values[place];
    }
  }
};

/// Rows that end in one chunk, head[chunk] and tail[chunk]. A row is finished by the chunk in which the next one begins.
template <class T, int W, bool kHubs>
__device__ void add_chunk(const Sequence& a, std::int64_t chunk, const T* __restrict__ values, const dense::Rows<T>& v,
                          T* __restrict__ head, T* __restrict__ tail, unsigned hubs, char* stage) {
  using Row = Wide<T, W>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto write = [&](int row_number, const Row& sum) {
    const std::int64_t row = __ldg(a.rows + row_number);
    dense::store_row(v, reinterpret_cast<T*>(reinterpret_cast<char*>(v.y) + row * v.y_bytes), sum.of);
  };
  const std::int64_t begin = chunk * kChunk;
  const int count = static_cast<int>(min(a.nnz - begin, std::int64_t{kChunk}));
  const unsigned flags = __ldg(a.flags + chunk * 32 + lane);
  const int first = __ldg(a.begun + chunk);
  const Nonzeros<T> own(lane, count, a.col_idx + begin, values + begin, stage);
  Row x[kItems];
#pragma unroll
  for (int u = 0; u < kItems; ++u) {
    const char* const at = dense::row_at(reinterpret_cast<const char*>(v.x), own.column[u], v.x_bytes);
    if constexpr (kHubs)
      x[u] =
          load_row_or_hub<T, W>(own.column[u] < 0, hubs + static_cast<unsigned>(~own.column[u]) * unsigned{sizeof(Row)}, at);
    else x[u] = load_row<T, W>(at);
  }
  const int entered = first + cuda::scan(lane, __popc(flags)) - __popc(flags);
  int row = entered;
  using Sums = cuda::LaneSums<Row>;
  Sums sums, joined;  // joined: the part that belongs to the row open when this lane was entered
#pragma unroll
  for (int u = 0; u < kItems; ++u) {
    if (flags >> u & 1) {
      if (row == entered) joined = sums;
      else write(row - 1, sums.behind(Row{}));
      ++row;
      sums = {};
    }
    Row& sum = sums.of[u / (kItems / Sums::kSegments)];
    if (lane * kItems + u < count)
#pragma unroll
      for (int w = 0; w < W; ++w) sum.of[w] = dense::plus_rounded(sum.of[w], own.value[u], x[u].of[w]);
  }
  const cuda::Open<Row> before = cuda::join_lanes(lane, flags != 0, sums, Row{});
  if (flags != 0) {
    Row of_row = joined.behind(before.in_lanes);
    if (before.began_before_group) of_row = cuda::plus(of_row, before.in_groups);
    if (entered == first) store_row(reinterpret_cast<char*>(head + chunk * W), of_row);
    else write(entered - 1, of_row);
  }
  if (lane == 0) store_row(reinterpret_cast<char*>(tail + chunk * W), before.behind);
}

template <class T, int W, bool kHubs>
__global__ void __launch_bounds__(kHubs ? kHubBlock<Wide<T, W>> : kPlainBlock, kHubs ? 1 : (sizeof(T) * W > 16 ? 2 : 3))
    csr_segmented_spmm(Sequence a, const T* __restrict__ values, dense::Rows<T> v, T* __restrict__ head,
                       T* __restrict__ tail) {
  extern __shared__ __align__(16) char shared[];
  using Row = Wide<T, W>;
  const int hub_bytes = kHubs ? a.hubs * static_cast<int>(sizeof(Row)) : 0;
  if constexpr (kHubs) {
    // A constant stride lets the compiler unroll the loop: each round waits for two loads, one after the other.
    for (int i = static_cast<int>(threadIdx.x); i < a.hubs; i += kHubBlock<Row>)
      store_row(shared + i * sizeof(Row),
                load_row<T, W>(dense::row_at(reinterpret_cast<const char*>(v.x), __ldg(a.hub_columns + i), v.x_bytes)));
    __syncthreads();
  }
  const int warps = static_cast<int>(blockDim.x) / 32, warp = static_cast<int>(threadIdx.x) / 32;
  char* const stage = shared + hub_bytes + warp * kStageBytes<T>;
  const auto hubs = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  for (std::int64_t chunk = static_cast<std::int64_t>(blockIdx.x) * warps + warp; chunk < a.chunks;
       chunk += static_cast<std::int64_t>(gridDim.x) * warps)
    add_chunk<T, W, kHubs>(a, chunk, values, v, head, tail, hubs, stage);
}

template <class T>
using Instance = decltype(&csr_segmented_spmm<T, 2, false>);
/// The instance for rows of X with `columns` columns; null if there is none.
template <class T>
Instance<T> instance(int columns, bool has_hubs) {
  constexpr int kMost = kRowBytes / static_cast<int>(sizeof(T));
  if (columns == 2) return has_hubs ? csr_segmented_spmm<T, 2, true> : csr_segmented_spmm<T, 2, false>;
  if (columns == 4) return has_hubs ? csr_segmented_spmm<T, 4, true> : csr_segmented_spmm<T, 4, false>;
  if constexpr (kMost == 8)
    if (columns == 8) return has_hubs ? csr_segmented_spmm<T, 8, true> : csr_segmented_spmm<T, 8, false>;
  return nullptr;
}

/// What a plan prepares.
struct Prepared {
  cuda::Segments segments;
  cuda::Hubs hubs;
  std::int64_t multiprocessors = 0;
};

template <class T>
void multiply(const CsrStorage& a, const Prepared& prepared, const dense::Rows<T>& v, Stream& stream) {
  const cuda::Segments& segments = prepared.segments;
  const cuda::Hubs& hubs = prepared.hubs;
  const bool has_hubs = hubs.count > 0;
  const Sequence sequence{a.nnz,
                          segments.chunks,
                          hubs.count,
                          segments.flags.as<std::uint8_t>(),
                          segments.begun.as<std::int32_t>(),
                          segments.rows.as<std::int32_t>(),
                          (has_hubs ? hubs.coded : a.col_idx).as<std::int32_t>(),
                          hubs.columns.as<std::int32_t>()};
  const Instance<T> kernel = instance<T>(v.columns, has_hubs);
  const int row_bytes = v.columns * static_cast<int>(sizeof(T));
  const int block = has_hubs ? hub_block(row_bytes) : kPlainBlock, warps = block / 32;
  const std::size_t shared =
      static_cast<std::size_t>(warps) * kStageBytes<T> + static_cast<std::size_t>(hubs.count * row_bytes);
  std::int64_t blocks = (segments.chunks + warps - 1) / warps;
  if (has_hubs) blocks = std::min(blocks, prepared.multiprocessors);
  cuda::allow_shared_memory(kernel, shared, stream.device());
  cuda::launch_blocks(kernel, blocks, block, shared, stream, sequence, a.values.as<T>(), v, segments.split.head.as<T>(),
                      segments.split.tail.as<T>());
  cuda::finish_rows_of_columns<T>(segments.split, segments.empty.as<std::int32_t>(), segments.empty_count, v.alpha, v.beta,
                                  v.y, v.y_bytes / static_cast<std::int64_t>(sizeof(T)), stream);
}

}  // namespace

bool csr_segmented_spmm_supports(const Storage& storage, const RightHandSides& rhs) {
  return csr_segmented_supports(storage) && !is_half(storage.type) && rhs.count > 1 &&
         rhs.count * static_cast<std::int64_t>(size_of(storage.type)) <= kRowBytes;
}

std::vector<Policy> csr_segmented_spmm_policies(const Storage&, const RightHandSides&) {
  return {Policy{{"hub_kb", 0}}, Policy{{"hub_kb", 144}}};
}

bool csr_segmented_spmm_in_order(ValueType, const Policy&, const Policy&) { return true; }

std::unique_ptr<SpmmPlan> make_csr_segmented_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                  const Policy& policy, Stream& stream) {
  const int hub_kb = policy.at("hub_kb");
  if (hub_kb < 0 || hub_kb > 208) throw Error(ErrorKind::usage, "csr_segmented: hub_kb must be from 0 to 208");
  const auto& a = static_cast<const CsrStorage&>(*storage);
  const std::size_t value = size_of(a.type);
  const int columns = dense::padded_columns(rhs.count, dense::width_for(rhs.count, value));
  const int row_bytes = columns * static_cast<int>(value);
  auto prepared = std::make_shared<Prepared>();
  prepared->segments = cuda::find_segments(a, kItems, 1, columns, stream);
  prepared->multiprocessors = properties(a.device).multiprocessors;
  if (hub_kb > 0) {
    const std::size_t stages = static_cast<std::size_t>(hub_block(row_bytes) / 32) *
                               (a.type == ValueType::f32 ? kStageBytes<float> : kStageBytes<double>);
    const std::size_t most = cuda::most_shared_memory(a.device);
    if (stages >= most)
      throw Error(ErrorKind::usage, "csr_segmented: this GPU lacks the shared memory for hubs; set hub_kb=0");
    const std::size_t room = std::min(static_cast<std::size_t>(hub_kb) * 1024, most - stages);
    prepared->hubs = cuda::find_hubs(a, room / static_cast<std::size_t>(row_bytes), stream);
  }
  const std::int64_t bytes = prepared->segments.bytes() + prepared->hubs.bytes();
  return cuda::row_major_plan<CsrStorage>(
      std::move(storage), rhs,
      [prepared]<class T>(const CsrStorage& matrix, const dense::Rows<T>& v, Stream& on) {
        multiply<T>(matrix, *prepared, v, on);
      },
      bytes);
}

}  // namespace shardmat
