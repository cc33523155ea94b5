#include "kernels/triangles/slices.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/base/at.h"
#include "kernels/base/parallel.h"

namespace shardmat::triangles {
namespace {

constexpr std::int64_t kWindow = 1024;        ///< rows of a level that are sorted by length together
constexpr std::int64_t kBusyLanes = 1 << 14;  ///< that a GPU needs to be busy in a level

/// Where a row of the matrix stands in the arrays, and the other way round.
std::int64_t place(const TriangleRows& rows, std::int64_t row) { return rows.reversed ? rows.count - 1 - row : row; }

std::int64_t length(const TriangleRows& rows, std::int64_t row) {
  const std::int64_t q = place(rows, row);
  return rows.start[q + 1] - rows.start[q];
}

void sort_by_length(const TriangleRows& rows, Levels& levels) {
  for (std::int64_t l = 0; l < levels.count(); ++l)
    for (std::int64_t begin = levels.start[at(l)]; begin < levels.start[at(l) + 1]; begin += kWindow) {
      const std::int64_t end = std::min(begin + kWindow, levels.start[at(l) + 1]);
      std::stable_sort(levels.row.begin() + begin, levels.row.begin() + end,
                       [&](std::int32_t a, std::int32_t b) { return length(rows, a) > length(rows, b); });
    }
}

}  // namespace

Levels find_levels(const TriangleRows& rows, const HostVector<std::int32_t>& together) {
  HostVector<std::int32_t> level(at(rows.count));  // by row of the matrix
  Levels levels;
  for (std::int64_t q = 0; q < rows.count; ++q) {
    std::int32_t mine = 0;
    for (std::int64_t k = rows.start[q]; k < rows.start[q + 1]; ++k) mine = std::max(mine, level[at(rows.column[k])] + 1);
    level[at(place(rows, q))] = mine;
    if (std::ssize(levels.start) < mine + 2) levels.start.push_back(0);
    ++levels.start[at(mine) + 1];
  }
  std::partial_sum(levels.start.begin(), levels.start.end(), levels.start.begin());
  std::vector<std::int64_t> next = levels.start;
  levels.row.resize(at(rows.count));
  for (const std::int32_t row : together) levels.row[at(next[at(level[at(row)])]++)] = row;
  sort_by_length(rows, levels);
  return levels;
}

Levels one_level(const TriangleRows& rows) {
  Levels levels;
  levels.row.resize(at(rows.count));
  std::iota(levels.row.begin(), levels.row.end(), 0);
  if (rows.count > 0) levels.start.push_back(rows.count);
  sort_by_length(rows, levels);
  return levels;
}

int team_of(const TriangleRows& rows, const Levels& levels) {
  if (rows.count == 0) return 1;
  const std::int64_t blocks = rows.start[rows.count] / rows.count, together = rows.count / levels.count();
  int team = 1;
  while (team < kLanes && team < blocks && together * team < kBusyLanes) team *= 2;
  return team;
}

Slices make_slices(const TriangleRows& rows, const Levels& levels, const HostVector<std::int32_t>& number, int size,
                   ValueType type, int team) {
  const std::int64_t of_slice = kLanes / team, entries = std::int64_t{size} * size;
  Slices s;
  s.team = team;
  HostVector<std::int64_t> first;  // place of the first row of each slice in levels.row
  for (std::int64_t l = 0; l < levels.count(); ++l) {
    for (std::int64_t i = levels.start[at(l)]; i < levels.start[at(l) + 1]; i += of_slice) {
      const std::int64_t end = std::min(i + of_slice, levels.start[at(l) + 1]);
      std::int64_t longest = 0;
      for (std::int64_t j = i; j < end; ++j) longest = std::max(longest, length(rows, levels.row[at(j)]));
      first.push_back(i);
      s.start.push_back(s.start.back() + (longest + team - 1) / team);
      for (std::int64_t j = i; j < i + of_slice; ++j) s.row.push_back(j < end ? number[at(levels.row[at(j)])] : -1);
    }
    s.level.push_back(s.count());
  }
  first.push_back(rows.count);
  s.column.resize(at(s.start.back() * kLanes));
  s.value.resize(s.column.size() * at(entries) * size_of(type));
  dispatch(type, [&]<class Tag>(Tag) {
    using V = typename Tag::type;
    const V* const from = static_cast<const V*>(rows.value);
    V* const to = reinterpret_cast<V*>(s.value.data());
    parallel_ranges(s.count(), grain_of(s.count(), std::ssize(s.column)), [&](std::int64_t begin, std::int64_t end) {
      std::fill(s.column.begin() + s.start[at(begin)] * kLanes, s.column.begin() + s.start[at(end)] * kLanes, -1);
      std::fill(to + s.start[at(begin)] * kLanes * entries, to + s.start[at(end)] * kLanes * entries, V(0));
      for (std::int64_t slice = begin; slice < end; ++slice)
        for (std::int64_t t = 0; t < of_slice && s.row[at(slice * of_slice + t)] >= 0; ++t) {
          const std::int64_t q = place(rows, levels.row[at(first[at(slice)] + t)]);
          for (std::int64_t k = rows.start[q]; k < rows.start[q + 1]; ++k) {
            const std::int64_t nth = k - rows.start[q], slot = s.start[at(slice)] + nth / team, lane = t * team + nth % team;
            s.column[at(slot * kLanes + lane)] = number[at(rows.column[k])];
            for (std::int64_t e = 0; e < entries; ++e) to[(slot * entries + e) * kLanes + lane] = from[k * entries + e];
          }
        }
    });
  });
  return s;
}

}  // namespace shardmat::triangles
