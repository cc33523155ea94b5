// Packed rows with many right-hand sides, for matrices whose rows mostly share their columns (stencils): G lanes take four
// rows of a slice, which mostly are neighbours. Where the columns of three slots follow each other, as those of a grid line
// do, the four rows need six rows of X between them, which are loaded once and used from registers, where products row by
// row would load twelve. Where a grid line ends inside a slice, four rows are no neighbours. Then all lanes of the warp
// share the work on them, a row for each G lanes: else the warp would wait for the lanes of these rows alone. The warps of a
// block take the rows of some slices one after another as they get free; with `cluster`, those slices share columns, so that
// rows of X stay in L1, too. With `stay`, one large block a multiprocessor goes through the whole matrix, else many small
// ones through a few slices each.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/packed_csr_rows.h"
#include "kernels/cuda/packed_rows.h"
#include "kernels/cuda/row_major_plan.h"
#include "kernels/formats/packed_spmm.h"
#include "kernels/formats/upload.h"

namespace shardmat {
namespace {

using dense::Stretch;
using dense::Wide;
using SingleRows = packed::Shape<1, 1>;

constexpr int kThreads = 512;                          ///< of a multiprocessor, which registers limit
constexpr int kRows = 4;                               ///< of a lane
constexpr int kRun = 3;                                ///< slots with columns that follow each other
constexpr int kSlicesOfBlock = 16, kSlicesAtOnce = 2;  ///< of a block that goes, and of one that stays without clusters

template <class T, int P>
using Sums = T[kRows][P][dense::kWidth<T>];
template <class T, int G, int P>
using Columns = Stretch<T, dense::kWidth<T>, G, P>;
template <class T>
using Entries = Wide<T, dense::kWidth<T>>;  ///< of a row of X, in one lane

/// Values of N slots for the rows of a lane.
template <int N, class T>
__device__ void load_values(T (&value)[N][kRows], const T* values) {
  constexpr int W = dense::kWidth<T>;
#pragma unroll
  for (int j = 0; j < N; ++j)
#pragma unroll
    for (int i = 0; i < kRows; i += W) {
      T some[W];
      dense::stream<W>(some, values + j * kPackedLanes + i);
#pragma unroll
      for (int w = 0; w < W; ++w) value[j][i + w] = some[w];
    }
}

/// Adds N slots of neighbouring columns for neighbouring rows; `x` is at the first column of the first row.
template <int N, class T, int G, int P>
__device__ void add_together(const T* values, const char* x, std::int32_t x_bytes, Sums<T, P>& acc) {
  constexpr int kOfX = N + kRows - 1;
  T value[N][kRows];
  Entries<T> of_x[kOfX][P];
  load_values<N>(value, values);
#pragma unroll
  for (int t = 0; t < kOfX; ++t)
#pragma unroll
    for (int q = 0; q < P; ++q)
      of_x[t][q] = dense::load<Entries<T>>(x + static_cast<std::int64_t>(t) * x_bytes + q * Columns<T, G, P>::kStepBytes);
#pragma unroll
  for (int t = 0; t < kOfX; ++t)
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (t - j >= 0 && t - j < kRows)
#pragma unroll
        for (int q = 0; q < P; ++q)
#pragma unroll
          for (int w = 0; w < dense::kWidth<T>; ++w)
            acc[t - j][q][w] = fma(value[j][t - j], of_x[t][q].of[w], acc[t - j][q][w]);
}

/// Likewise for any rows; `x` is at the first column of row 0. Two rows at once, which is what registers allow.
template <int N, class T, int G, int P>
__device__ void add_apart(const T* values, const char* x, const std::int32_t (&row)[kRows], std::int32_t x_bytes,
                          Sums<T, P>& acc) {
  T value[N][kRows];
  load_values<N>(value, values);
#pragma unroll
  for (int i = 0; i < kRows; i += 2) {
    Entries<T> of_x[2][N][P];
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int j = 0; j < N; ++j)
#pragma unroll
        for (int q = 0; q < P; ++q)
          of_x[h][j][q] = dense::load<Entries<T>>(x + (static_cast<std::int64_t>(row[i + h]) + j) * x_bytes +
                                                  q * Columns<T, G, P>::kStepBytes);
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int j = 0; j < N; ++j)
#pragma unroll
        for (int q = 0; q < P; ++q)
#pragma unroll
          for (int w = 0; w < dense::kWidth<T>; ++w)
            acc[i + h][q][w] = fma(value[j][i + h], of_x[h][j][q].of[w], acc[i + h][q][w]);
  }
}

/// Goes through the shared slots of a slice: body(first slot, its difference, std::integral_constant<int, slots>) for runs
/// of kRun slots and for single ones. The differences of the next are read while the entries of these are under way.
template <class Body>
__device__ void for_runs(int slots, const std::int32_t* deltas, const Body& body) {
  const auto delta = [&](int slot) { return __ldg(deltas + min(slot, slots - 1)); };
  std::int32_t here = delta(0), ahead = delta(kRun - 1);
#pragma unroll 1
  for (int s = 0; s < slots;) {
    const bool run = s + kRun <= slots && ahead == here + kRun - 1;
    const int after = s + (run ? kRun : 1);
    const std::int32_t next = delta(after), next_ahead = delta(after + kRun - 1);
    if (run) body(s, here, std::integral_constant<int, kRun>{});
    else body(s, here, std::integral_constant<int, 1>{});
    s = after, here = next, ahead = next_ahead;
  }
}

/// Adds the shared slots of a slice. `together`: the rows are neighbours, in this order.
template <class T, int G, int P>
__device__ void add_shared(int slots, const std::int32_t* deltas, const T* values, const char* x,
                           const std::int32_t (&row)[kRows], bool together, std::int32_t x_bytes, Sums<T, P>& acc) {
  if (together) {
    x += static_cast<std::int64_t>(row[0]) * x_bytes;
    for_runs(slots, deltas, [&](int s, std::int32_t delta, auto count) {
      add_together<decltype(count)::value, T, G, P>(values + s * kPackedLanes,
                                                    x + static_cast<std::int64_t>(delta) * x_bytes, x_bytes, acc);
    });
  } else {
    for_runs(slots, deltas, [&](int s, std::int32_t delta, auto count) {
      add_apart<decltype(count)::value, T, G, P>(values + s * kPackedLanes, x + static_cast<std::int64_t>(delta) * x_bytes,
                                                 row, x_bytes, acc);
    });
  }
}

/// Adds the shared slots of one row; `values` and `x` are at the row.
template <class T, int G, int P>
__device__ void add_shared_of_row(int slots, const std::int32_t* deltas, const T* values, const char* x,
                                  std::int32_t x_bytes, T (&acc)[1][P][dense::kWidth<T>]) {
  constexpr int kAtOnce = 8;
#pragma unroll 1
  for (int s = 0; s < slots; s += kAtOnce) {
    std::int32_t delta[kAtOnce];
    T value[kAtOnce];
    Entries<T> of_x[kAtOnce][P];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int slot = min(s + j, slots - 1);
      delta[j] = __ldg(deltas + slot);
      value[j] = __ldg(values + slot * kPackedLanes);
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
#pragma unroll
      for (int q = 0; q < P; ++q)
        of_x[j][q] =
            dense::load<Entries<T>>(x + static_cast<std::int64_t>(delta[j]) * x_bytes + q * Columns<T, G, P>::kStepBytes);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      if (s + j < slots)
#pragma unroll
        for (int q = 0; q < P; ++q)
#pragma unroll
          for (int w = 0; w < dense::kWidth<T>; ++w) acc[0][q][w] = fma(value[j], of_x[j][q].of[w], acc[0][q][w]);
  }
}

/// Adds entries k = begin … end - 1 of row `i` of a lane: entry(k) gives column and value. For slots that are not shared.
template <class T, int G, int P, int R, class Entry>
__device__ void add_entries(int begin, int end, int i, const char* x, std::int32_t x_bytes, const Entry& entry,
                            T (&acc)[R][P][dense::kWidth<T>]) {
  constexpr int kUnroll = 4;
  for (int k = begin; k < end; k += kUnroll) {
    T value[kUnroll];
    Entries<T> of_x[kUnroll][P];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const auto [column, v] = entry(min(k + u, end - 1));
      value[u] = k + u < end ? v : T(0);
#pragma unroll
      for (int q = 0; q < P; ++q)
        of_x[u][q] =
            dense::load<Entries<T>>(x + static_cast<std::int64_t>(column) * x_bytes + q * Columns<T, G, P>::kStepBytes);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      if (k + u < end)
#pragma unroll
        for (int r = 0; r < R; ++r)
          if (r == i)
#pragma unroll
            for (int q = 0; q < P; ++q)
#pragma unroll
              for (int w = 0; w < dense::kWidth<T>; ++w) acc[r][q][w] = fma(value[u], of_x[u][q].of[w], acc[r][q][w]);
  }
}

template <class T>
struct Entry {
  std::int32_t column;
  T value;
};

/// Adds the slots that are not shared of row `i` of a lane; `place`: of the row in the slice.
template <class T, int G, int P, int R>
__device__ void add_others(const PackedSlice& slice, const T* values, const char* narrow, int place, int i, const char* x,
                           std::int32_t x_bytes, T (&acc)[R][P][dense::kWidth<T>]) {
  const packed::SlotCounts<SingleRows> counts(slice);
  const auto* full = reinterpret_cast<const std::int32_t*>(narrow + counts.narrow_bytes());
  add_entries<T, G, P>(
      0, slice.slots[kNarrowSlot], i, x, x_bytes,
      [&](int k) {
        return Entry<T>{packed::NarrowColumns<SingleRows, 1>{narrow, place}.left(0, k),
                        __ldg(values + counts.values(kNarrowSlot) + k * kPackedLanes + place)};
      },
      acc);
  add_entries<T, G, P>(
      0, slice.slots[kFullSlot], i, x, x_bytes,
      [&](int k) {
        return Entry<T>{__ldg(full + k * kPackedLanes + place),
                        __ldg(values + counts.values(kFullSlot) + k * kPackedLanes + place)};
      },
      acc);
}

template <class T, int G, int P, int kBlock>
__global__ void __launch_bounds__(kBlock, kThreads / kBlock)
    packed_stencil_spmm(const packed::Arguments<T> a, const dense::Rows<T> v, const std::int32_t* __restrict__ order,
                        int log2_slices, int first_column, int across, bool stay) {
  constexpr int kTogether = kPackedLanes / G * kRows;  // rows of a slice that go together
  constexpr int kParts = (kPackedLanes + kTogether - 1) / kTogether;
  const int lane = static_cast<int>(threadIdx.x) % kPackedLanes;
  __shared__ int taken;  // some items take longer than others
  if (threadIdx.x == 0) taken = kBlock / kPackedLanes;
  __syncthreads();
  // There are `across` blocks for the same slices, with different columns. Blocks that do not stay run next to each other if
  // they have the same slices, so that these are read from memory once.
  const unsigned of_columns = static_cast<unsigned>(across), of_slices = gridDim.x / of_columns;
  const unsigned block = stay ? blockIdx.x % of_slices : blockIdx.x / of_columns;
  const unsigned stretch = stay ? blockIdx.x / of_slices : blockIdx.x % of_columns;
  const Columns<T, G, P> columns(v, first_column + static_cast<int>(stretch) * Columns<T, G, P>::kColumns, lane);
  const char* x = columns.x(v);
  const auto next = [&] { return __shfl_sync(packed::kAll, lane == 0 ? atomicAdd(&taken, 1) : 0, 0); };
  for (int item = static_cast<int>(threadIdx.x) / kPackedLanes;; item = next()) {
    const int number = item / kParts;  // of the slice, among those of this block
    const unsigned round = static_cast<unsigned>(number) >> log2_slices;
    const unsigned first = (block + round * of_slices) << log2_slices;
    const unsigned index = first + (static_cast<unsigned>(number) & ((1u << log2_slices) - 1));
    if (first >= a.count) break;
    if (index >= a.count) continue;
    const PackedSlice slice = packed::load_slice(a.slices + (order != nullptr ? __ldg(order + index) : index));
    packed::wait_if_late(slice, x);
    const int first_group = item % kParts * kTogether, group = first_group + lane / G * kRows;
    const bool active = group < slice.real;
    std::int32_t row[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      row[i] = static_cast<std::int32_t>(packed::first_row<SingleRows>(slice, a, min(group + i, slice.real - 1)));
    const T* values = a.values + std::uint64_t{slice.values} * (kPackedUnit / sizeof(T));
    const std::int32_t* deltas = a.deltas + slice.deltas;
    const char* narrow = a.indices + std::uint64_t{slice.indices} * kPackedUnit;
    bool together = true;  // rows of falling length need not ascend, and those behind the last are like the last
#pragma unroll
    for (int i = 1; i < kRows; ++i) together = together && row[i] - row[i - 1] == 1;
    const unsigned with_rows = __ballot_sync(packed::kAll, active), apart = __ballot_sync(packed::kAll, active && !together);
    const bool mixed = !slice.csr && slice.slots[kSharedSlot] > 0 && apart != 0 && apart != with_rows;
    if (active && (together || !mixed)) {
      Sums<T, P> acc = {};
      if (slice.csr) {
        const auto* column = reinterpret_cast<const std::int32_t*>(narrow);
        const int lanes = packed::lanes_of_csr_row<SingleRows>(deltas);
        for (int i = 0; i < kRows && group + i < slice.real; ++i) {
          const std::int32_t begin = __ldg(deltas + group + i), end = __ldg(deltas + group + i + 1);
          T sum[P][dense::kWidth<T>] = {};
          packed::add_csr_row<T, dense::kWidth<T>, G, P>(begin, end, packed::stretch_of_csr_row(end - begin, lanes), column,
                                                         values, x, v.x_bytes, sum);
#pragma unroll
          for (int r = 0; r < kRows; ++r)
            if (r == i)
#pragma unroll
              for (int q = 0; q < P; ++q)
#pragma unroll
                for (int w = 0; w < dense::kWidth<T>; ++w) acc[r][q][w] = sum[q][w];
        }
      } else {
        if (slice.slots[kSharedSlot] > 0)
          add_shared<T, G, P>(slice.slots[kSharedSlot], deltas, values + group, x, row, together, v.x_bytes, acc);
        const bool others = (slice.slots[kNarrowSlot] | slice.slots[kFullSlot]) != 0;
        for (int i = 0; others && i < kRows; ++i)
          add_others<T, G, P>(slice, values, narrow, min(group + i, kPackedLanes - 1), i, x, v.x_bytes, acc);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        if (group + i < slice.real) columns.store(v, row[i], acc[i]);
    }
    if (mixed) {
      for (unsigned left = apart; left != 0;) {
        const int of_group = (__ffs(static_cast<int>(left)) - 1) / G;
        left &= ~(((1u << G) - 1) << (of_group * G));
        for (int i = lane / G; i < kRows; i += kPackedLanes / G) {
          const int place = first_group + of_group * kRows + i;
          if (place >= slice.real) break;
          const auto of_place = static_cast<std::int32_t>(packed::first_row<SingleRows>(slice, a, place));
          T sum[1][P][dense::kWidth<T>] = {};
          add_shared_of_row<T, G, P>(slice.slots[kSharedSlot], deltas, values + place,
                                     x + static_cast<std::int64_t>(of_place) * v.x_bytes, v.x_bytes, sum);
          add_others<T, G, P>(slice, values, narrow, place, 0, x, v.x_bytes, sum);
          columns.store(v, of_place, sum[0]);
        }
      }
    }
  }
}

template <class T>
using Instance = decltype(&packed_stencil_spmm<T, 1, 1, kThreads>);

/// The instance for a policy, or null.
template <class T, int kBlock>
Instance<T> instance(int lanes, int passes) {
  switch (dense::shape_of(lanes, passes)) {
    case 11:
      return packed_stencil_spmm<T, 1, 1, kBlock>;
    case 21:
      return packed_stencil_spmm<T, 2, 1, kBlock>;
    case 41:
      return packed_stencil_spmm<T, 4, 1, kBlock>;
    case 42:
      return packed_stencil_spmm<T, 4, 2, kBlock>;
    case 81:
      return packed_stencil_spmm<T, 8, 1, kBlock>;
    case 82:
      return packed_stencil_spmm<T, 8, 2, kBlock>;
    case 162:
      return packed_stencil_spmm<T, 16, 2, kBlock>;
    default:
      return nullptr;
  }
}

/// Many blocks that take a few slices each, or one a multiprocessor that stays.
struct Blocks {
  bool stay;
  int log2_slices;    ///< that a block takes at once
  std::int64_t most;  ///< blocks that stay

  int threads() const { return stay ? kThreads : kThreads / 2; }
  std::int64_t count(std::int64_t slices) const {
    const std::int64_t parts = (slices + (1 << log2_slices) - 1) >> log2_slices;
    return stay ? std::min(parts, most) : parts;
  }
  template <class T>
  Instance<T> kernel(int lanes, int passes) const {
    return stay ? instance<T, kThreads>(lanes, passes) : instance<T, kThreads / 2>(lanes, passes);
  }
};

}  // namespace

std::vector<Policy> packed_stencil_spmm_policies(const Storage& storage, const RightHandSides& rhs) {
  const std::int64_t wide = dense::lanes_of_row(rhs.count, size_of(storage.type));
  const auto policy = [](int lanes, int passes, int cluster, int stay) {
    return Policy{{"lanes", lanes}, {"passes", passes}, {"cluster", cluster}, {"stay", stay}};
  };
  if (wide <= 4) return {policy(4, 1, 0, 1), policy(4, 1, 0, 0)};
  if (wide <= 8) return {policy(4, 2, 0, 1), policy(4, 2, 16, 0)};
  if (wide <= 16) return {policy(8, 2, 0, 1), policy(8, 2, 16, 0)};
  return {policy(8, 2, 16, 0), policy(16, 2, 8, 1), policy(8, 2, 0, 1)};
}

std::unique_ptr<SpmmPlan> make_packed_stencil_spmm(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                   const Policy& policy, Stream& stream) {
  const int lanes = policy.at("lanes"), passes = policy.at("passes"), cluster = policy.at("cluster"),
            stay = policy.at("stay");
  if (instance<float, kThreads>(lanes, passes) == nullptr)
    throw Error(ErrorKind::usage, "packed_stencil: lanes must be 1, 2, 4 or 8 with one pass, or 4, 8 or 16 with two");
  if (cluster < 0 || cluster > 1024 || (cluster & (cluster - 1)) != 0)
    throw Error(ErrorKind::usage,
                "packed_stencil: cluster must be 0 (the matrix's order) or a power of two up to 1024 slices");
  if (stay != 0 && stay != 1)
    throw Error(ErrorKind::usage, "packed_stencil: stay must be 1 (a block a multiprocessor goes through the matrix) or 0");
  const DeviceProperties device = properties(storage->device);
  auto order = std::make_shared<Buffer>();
  if (cluster > 0) {
    // A block that stays goes through neighbouring clusters by itself. Of others those that run together share the L2 cache,
    // which holds a third of its size in rows of X, or stretches of them, until they come again.
    const auto entry_bytes = static_cast<std::int64_t>(size_of(storage->type));
    const std::int64_t row_bytes = std::min(rhs.count * entry_bytes, std::int64_t{16} * lanes * passes);
    const std::int64_t window = stay == 1 ? std::numeric_limits<std::int64_t>::max() : device.l2_bytes / 3 / row_bytes;
    *order = upload(clustered_slices(static_cast<const PackedStorage&>(*storage), cluster, window, stream), stream);
  }
  const auto order_bytes = static_cast<std::int64_t>(order->bytes());
  const int slices = stay == 0 ? kSlicesOfBlock : cluster > 0 ? cluster : kSlicesAtOnce;
  const Blocks grid{stay == 1, std::countr_zero(static_cast<unsigned>(slices)), device.multiprocessors};
  return cuda::row_major_plan<PackedStorage>(
      std::move(storage), rhs,
      [lanes, passes, order, grid]<class T>(const PackedStorage& a, const dense::Rows<T>& v, Stream& on) {
        const packed::Arguments<T> matrix = packed::arguments<T>(a, {});
        const auto launch = [&](int of_lanes, int of_passes, int first, int across) {
          cuda::launch_grid_beside(a.expects_late && !grid.stay, grid.kernel<T>(of_lanes, of_passes),
                                   grid.count(a.slices) * across, 1, grid.threads(), 0, on, matrix, v,
                                   order->as<std::int32_t>(), grid.log2_slices, first, across, grid.stay);
        };
        dense::split_columns(
            v.columns, dense::kWidth<T>, lanes, passes, [&](int first, int blocks) { launch(lanes, passes, first, blocks); },
            [&](int first, int few) { launch(few, 1, first, 1); });
      },
      order_bytes, stay == 0);
}

}  // namespace shardmat
