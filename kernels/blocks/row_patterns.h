// Patterns of rows that are unions of others, on a GPU: a team of 8 or 32 lanes collects the columns of a row in shared
// memory and sorts them; a thread block does where there are too many. Rows are walked twice, to count and to write.
//
// A source of rows says by each(row, lane, lanes, insert) which columns a row has. All lanes call it, each for its share;
// insert(column) may be called for a column any number of times.
#pragma once

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/blocks/scans.h"
#include "kernels/blocks/setup.h"
#include "kernels/blocks/small_blocks.h"
#include "kernels/cuda/launch.h"

namespace shardmat::blocks {
namespace patterns {

constexpr int kThreadsOfRows = 256;
/// Places for the columns of a row of a thread block, and columns that they hold at most.
constexpr int kWidePlaces = 16384, kWideMost = 12288, kWideThreads = 512;
/// The same for a row of a team of 8, and of a warp: of few columns, or of more.
constexpr int kLeastPlaces = 32, kFewPlaces = 128, kPlaces = 512;
template <int kPlacesOfRow>
constexpr int kMostOf = kPlacesOfRow / 4 * 3;
constexpr int kEmpty = -1;

/// Columns in shared memory, by open addressing.
struct Columns {
  int* place;
  unsigned mask;
  int most;
  int* count;  ///< of columns, in shared memory

  __device__ void insert(int column) const {
    unsigned at = static_cast<unsigned>(column) * 2654435761u >> 7 & mask;
    for (unsigned tried = 0; tried <= mask; ++tried, at = (at + 1) & mask) {
      const int found = *static_cast<volatile int*>(place + at);
      if (found == column) return;
      if (found != kEmpty) continue;
      const int before = atomicCAS(place + at, kEmpty, column);
      if (before == column) return;
      if (before != kEmpty) continue;
      atomicAdd(count, 1);
      return;
    }
    atomicAdd(count, most + 1);  // no place is left
  }
};

/// What a pass leaves about all rows.
struct Found {
  unsigned long long wide;  ///< rows with too many columns for a warp
  unsigned long long too_wide;
  int longest;
};

/// Sorts the columns of a set to `to`, by as many lanes, which wait() for each other. `list`: room for them.
template <class Wait>
__device__ void write_sorted(const Columns& set, int* list, int* taken, int lane, int lanes, std::int32_t* to,
                             const Wait& wait) {
  if (lane == 0) *taken = 0;
  wait();
  for (int at = lane; at <= static_cast<int>(set.mask); at += lanes)
    if (set.place[at] != kEmpty) list[atomicAdd(taken, 1)] = set.place[at];
  wait();
  const int n = *taken;
  for (int at = lane; at < n; at += lanes) {
    int before = 0;
    for (int other = 0; other < n; ++other) before += list[other] < list[at] ? 1 : 0;
    to[before] = list[at];
  }
}

/// Counts columns if `columns` is null, else writes them to start[row] of it.
template <int kTeam, int kPlacesOfRow, class Source>
__global__ void __launch_bounds__(kThreadsOfRows) walk_rows(Source source, std::int64_t rows, std::int64_t* start,
                                                            std::int32_t* columns, std::int32_t* wide, Found* found) {
  constexpr int kMost = kMostOf<kPlacesOfRow>, kTeams = kThreadsOfRows / kTeam;
  __shared__ int places[kTeams][kPlacesOfRow], lists[kTeams][kMost], counts[kTeams], taken[kTeams];
  const int team = static_cast<int>(threadIdx.x) / kTeam, lane = static_cast<int>(threadIdx.x) % kTeam;
  const unsigned mask = team_mask<kTeam>();
  const auto wait = [mask] { __syncwarp(mask); };
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kTeams + team;
  if (row >= rows) return;
  if (columns != nullptr && start[row + 1] - start[row] > kMost) return;
  for (int at = lane; at < kPlacesOfRow; at += kTeam) places[team][at] = kEmpty;
  if (lane == 0) counts[team] = 0;
  wait();
  const Columns set{places[team], kPlacesOfRow - 1, kMost, &counts[team]};
  source.each(row, lane, kTeam, [&](int column) {
    if (*static_cast<volatile int*>(set.count) <= kMost) set.insert(column);
  });
  wait();
  const int n = counts[team];
  if (columns != nullptr) return write_sorted(set, lists[team], &taken[team], lane, kTeam, columns + start[row], wait);
  if (lane != 0) return;
  start[row] = n;
  if (n > kMost) wide[atomicAdd(&found->wide, 1ull)] = static_cast<std::int32_t>(row);
  else if (n > *static_cast<volatile int*>(&found->longest)) atomicMax(&found->longest, n);
}

/// The same for the rows in `wide`, a thread block each.
template <class Source>
__global__ void __launch_bounds__(kWideThreads)
    walk_wide_rows(Source source, const std::int32_t* wide, std::int64_t* start, std::int32_t* columns, Found* found) {
  extern __shared__ int shared[];
  int *const places = shared, *const list = shared + kWidePlaces;
  __shared__ int count, taken;
  const std::int64_t row = wide[blockIdx.x];
  const int lane = static_cast<int>(threadIdx.x);
  for (int at = lane; at < kWidePlaces; at += kWideThreads) places[at] = kEmpty;
  if (lane == 0) count = 0;
  __syncthreads();
  const Columns set{places, kWidePlaces - 1, kWideMost, &count};
  source.each(row, lane, kWideThreads, [&](int column) {
    if (*static_cast<volatile int*>(set.count) <= kWideMost) set.insert(column);
  });
  __syncthreads();
  if (columns != nullptr)
    return write_sorted(set, list, &taken, lane, kWideThreads, columns + start[row], [] { __syncthreads(); });
  if (lane != 0) return;
  start[row] = count;
  if (count > kWideMost) atomicAdd(&found->too_wide, 1ull);
  else atomicMax(&found->longest, count);
}

}  // namespace patterns

/// Sets start, column and blocks of `out`, which has its sizes and count. Returns the length of the longest row. Throws
/// TooWide if a row has more than patterns::kWideMost blocks. `may_have(blocks)`: is asked before columns are written; the
/// pattern stays without them if it is false. `about`: columns of a row on average, or more.
template <class Source, class MayHave>
int form_pattern(const Source& source, BlockRows& out, std::int64_t about, Stream& stream, const MayHave& may_have) {
  using namespace patterns;
  out.start = array<std::int64_t>(out.count + 1, stream);
  const Buffer found = array<Found>(1, stream), wide = array<std::int32_t>(out.count, stream);
  fill_bytes(found.data(), 0, found.bytes(), stream);
  constexpr std::size_t kWideBytes = sizeof(int) * (kWidePlaces + kWideMost);
  const auto walk = [&](std::int32_t* columns) {
    const auto launch = [&](auto kernel, int team) {
      cuda::launch(kernel, out.count * team, kThreadsOfRows, stream, source, out.count, out.start.as<std::int64_t>(),
                   columns, wide.as<std::int32_t>(), found.as<Found>());
    };
    if (3 * about <= kMostOf<kLeastPlaces>) launch(walk_rows<8, kLeastPlaces, Source>, 8);
    else if (3 * about <= kMostOf<kFewPlaces>) launch(walk_rows<kLanes, kFewPlaces, Source>, kLanes);
    else launch(walk_rows<kLanes, kPlaces, Source>, kLanes);
  };
  const auto walk_wide = [&](std::int32_t* columns, std::int64_t rows) {
    if (rows == 0) return;
    cuda::allow_shared_memory(walk_wide_rows<Source>, kWideBytes, stream.device());
    cuda::launch_blocks(walk_wide_rows<Source>, rows, kWideThreads, kWideBytes, stream, source, wide.as<std::int32_t>(),
                        out.start.as<std::int64_t>(), columns, found.as<Found>());
  };
  walk(nullptr);
  Found all{};
  copy_to_host(&all, found.data(), sizeof all, stream);
  const auto wide_rows = static_cast<std::int64_t>(all.wide);
  if (wide_rows > 0) {
    walk_wide(nullptr, wide_rows);
    copy_to_host(&all, found.data(), sizeof all, stream);
    if (all.too_wide > 0) throw TooWide();
  }
  out.blocks = sum_before(out.start.as<std::int64_t>(), out.count, stream);
  if (!may_have(out.blocks)) return all.longest;
  require_memory(stream.device(), out.blocks * static_cast<std::int64_t>(sizeof(std::int32_t)), "the rows of a level");
  out.column = array<std::int32_t>(out.blocks, stream);
  walk(out.column.as<std::int32_t>());
  walk_wide(out.column.as<std::int32_t>(), wide_rows);
  return all.longest;
}

template <class Source>
int form_pattern(const Source& source, BlockRows& out, std::int64_t about, Stream& stream) {
  return form_pattern(source, out, about, stream, [](std::int64_t) { return true; });
}

}  // namespace shardmat::blocks
