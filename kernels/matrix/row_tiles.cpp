#include "kernels/matrix/row_tiles.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <queue>
#include <span>
#include <utility>

#include "kernels/base/parallel.h"
#include "kernels/matrix/rows.h"

namespace shardmat {
namespace {

using Vertex = std::int32_t;
constexpr std::int64_t kRowsAtLeast = 1 << 10;  // for a thread

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::uint32_t hash(Vertex vertex) {
  auto x = static_cast<std::uint32_t>(vertex);
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

/// For each vertex the vertex that leads its group: it leads itself.
HostVector<Vertex> leaders(const Rows& rows, std::int64_t diagonal) {
  const std::int64_t n = rows.count();
  HostVector<Vertex> leader(at(n)), next(at(n));
  parallel_ranges(n, kRowsAtLeast, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      auto best = static_cast<Vertex>(i);
      std::uint32_t most = hash(best);
      for (std::int64_t k = rows.begin(i); k < rows.end(i); ++k) {
        const std::int64_t other = rows.column(k) - diagonal;
        if (other < 0 || other >= n) continue;
        const std::uint32_t of_other = hash(static_cast<Vertex>(other));  // no two vertices have the same
        if (of_other > most) most = of_other, best = static_cast<Vertex>(other);
      }
      leader[at(i)] = best;
    }
  });
  for (std::atomic<bool> changed = true; changed.exchange(false); std::swap(leader, next))
    parallel_ranges(n, kRowsAtLeast, [&](std::int64_t begin, std::int64_t end) {
      bool here = false;
      for (std::int64_t i = begin; i < end; ++i) {
        next[at(i)] = leader[at(leader[at(i)])];
        here = here || next[at(i)] != leader[at(i)];
      }
      if (here) changed = true;
    });
  return leader;
}

/// Groups of vertices, and which of them are neighbours.
struct Groups {
  HostVector<Vertex> of;               ///< for each vertex its group
  std::vector<std::int64_t> first{0};  ///< of each group in `member`
  HostVector<Vertex> member;           ///< group by group, ascending
  std::vector<std::span<const Vertex>> neighbours;
  std::vector<std::vector<Vertex>> memory;  ///< of `neighbours`

  explicit Groups(const Rows& rows, std::int64_t diagonal) : of(leaders(rows, diagonal)), member(of.size()) {
    number_groups();
    find_neighbours(rows, diagonal);
  }
  Vertex count() const { return static_cast<Vertex>(first.size() - 1); }
  std::span<const Vertex> members(Vertex group) const {
    return {member.data() + first[at(group)], at(first[at(group) + 1] - first[at(group)])};
  }

 private:
  void number_groups() {
    const auto n = static_cast<Vertex>(of.size());
    std::vector<Vertex> number(of.size());
    Vertex groups = 0;
    for (Vertex i = 0; i < n; ++i)
      if (of[at(i)] == i) number[at(i)] = groups++;
    first.assign(at(groups) + 1, 0);
    for (Vertex& group : of) ++first[at(group = number[at(group)]) + 1];
    for (std::size_t g = 1; g < first.size(); ++g) first[g] += first[g - 1];
    std::vector<std::int64_t> place(first.begin(), first.end() - 1);
    for (Vertex i = 0; i < n; ++i) member[at(place[at(of[at(i)])]++)] = i;
  }

  void find_neighbours(const Rows& rows, std::int64_t diagonal) {
    constexpr std::int64_t kTasks = 256;
    neighbours.resize(at(count()));
    memory.resize(kTasks);
    parallel_tasks(kTasks, [&](std::int64_t task) {
      const std::int64_t begin = count() * task / kTasks, end = count() * (task + 1) / kTasks;
      std::vector<std::int64_t> seen(at(count()), -1);
      std::vector<Vertex>& found = memory[at(task)];
      std::vector<std::size_t> ends;
      for (std::int64_t group = begin; group < end; ++group) {
        seen[at(group)] = group;
        for (const Vertex i : members(static_cast<Vertex>(group)))
          for (std::int64_t k = rows.begin(i); k < rows.end(i); ++k) {
            const std::int64_t column = rows.column(k) - diagonal;
            if (column < 0 || column >= rows.count()) continue;
            const Vertex other = of[at(column)];
            if (std::exchange(seen[at(other)], group) != group) found.push_back(other);
          }
        ends.push_back(found.size());
      }
      for (std::int64_t group = begin; group < end; ++group) {
        const std::size_t from = group == begin ? 0 : ends[at(group - begin - 1)];
        neighbours[at(group)] = std::span(found).subspan(from, ends[at(group - begin)] - from);
      }
    });
  }
};

/// Tiles one after the other. A tile takes the neighbour with the most neighbours in the tile for each one that is left.
/// This leaves no scattered remains, which would read many columns.
class Growth {
 public:
  Growth(const Rows& rows, const Groups& groups, std::int64_t nonzeros) : groups_(groups) {
    tiles_.order.resize(at(rows.count()));
    of_group_.resize(at(groups.count()));
    for (Vertex g = 0; g < groups.count(); ++g) of_group_[at(g)].left = static_cast<float>(groups.neighbours[at(g)].size());
    std::int64_t placed = 0, held = 0;
    while (placed < rows.count()) {
      const Vertex group = next();
      of_group_[at(group)].taken = true;
      for (const Vertex i : groups.members(group)) {
        if (held >= nonzeros) {
          tiles_.first.push_back(placed);
          held = 0;
          begin_tile();
        }
        tiles_.order[at(placed++)] = i;
        held += rows.length(i);
      }
      join(group);
    }
    if (placed > 0) tiles_.first.push_back(placed);
  }
  RowTiles take() { return std::move(tiles_); }

 private:
  struct Group {
    bool taken = false;
    float left = 0;          ///< neighbours that are not taken
    float inside = 0;        ///< neighbours in the tile `tile`
    std::int32_t tile = -1;  ///< the last that had a neighbour

    float rank() const { return inside / std::max(left, 1.0f); }
  };

  /// The best neighbour of the tile; else the first that an earlier tile left, else the first of all.
  Vertex next() {
    for (; !queue_.empty(); queue_.pop()) {
      const auto [rank, group] = queue_.top();
      if (!of_group_[at(group)].taken && of_group_[at(group)].rank() == rank) return group;  // else it has been queued anew
    }
    for (; !seeds_.empty(); seeds_.pop_front())
      if (!of_group_[at(seeds_.front())].taken) return seeds_.front();
    while (of_group_[at(lowest_)].taken) ++lowest_;
    return lowest_;
  }

  void begin_tile() {
    ++tile_;
    seeds_.insert(seeds_.end(), touched_.begin(), touched_.end());
    touched_.clear();
    queue_ = {};
  }

  void join(Vertex group) {
    for (const Vertex g : groups_.neighbours[at(group)]) {
      Group& other = of_group_[at(g)];
      --other.left;
      if (other.taken) continue;
      if (std::exchange(other.tile, tile_) != tile_) {
        other.inside = 0;
        touched_.push_back(g);
      }
      ++other.inside;
      queue_.emplace(other.rank(), g);
    }
  }

  const Groups& groups_;
  RowTiles tiles_;
  std::vector<Group> of_group_;
  std::priority_queue<std::pair<float, Vertex>> queue_;
  std::vector<Vertex> touched_;  ///< neighbours of the tile, in the order in which they became that
  std::deque<Vertex> seeds_;
  Vertex lowest_ = 0;
  std::int32_t tile_ = 0;
};

}  // namespace

RowTiles tile_rows(const CsrView& matrix, std::int64_t nonzeros) {
  const Rows rows(matrix);
  const Groups groups(rows, matrix.diagonal);
  return Growth(rows, groups, nonzeros).take();
}

}  // namespace shardmat
