#include "kernels/matrix/row_tiles.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <queue>
#include <span>
#include <utility>

#include "kernels/base/at.h"
#include "kernels/base/parallel.h"
#include "kernels/matrix/rows.h"

namespace shardmat {
namespace {

using Vertex = std::int32_t;
constexpr std::int64_t kRowsAtLeast = 1 << 10;  // for a thread

/// For each vertex the vertex that leads its group: it leads itself.
HostVector<Vertex> leaders(const Rows& rows, std::int64_t diagonal) {
  const std::int64_t n = rows.count();
  HostVector<Vertex> leader(at(n)), next(at(n));
  const auto rank = [&](std::int64_t i) { return rank_of_row(static_cast<Vertex>(i), rows.length(i)); };
  parallel_ranges(n, kRowsAtLeast, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      auto best = static_cast<Vertex>(i);
      std::uint64_t most = rank(i);
      for (std::int64_t k = rows.begin(i); k < rows.end(i); ++k) {
        const std::int64_t other = rows.column(k) - diagonal;
        if (other < 0 || other >= n) continue;
        if (const std::uint64_t of_other = rank(other); of_other > most) most = of_other, best = static_cast<Vertex>(other);
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

/// The rows of each group, ascending: group g has row[first[g]] … row[first[g + 1] - 1].
struct Members {
  std::vector<std::int64_t> first;
  HostVector<Vertex> row;

  explicit Members(const RowGroups& groups) : first(at(groups.count()) + 1, 0), row(groups.of.size()) {
    for (const Vertex group : groups.of) ++first[at(group) + 1];
    for (std::size_t g = 1; g < first.size(); ++g) first[g] += first[g - 1];
    std::vector<std::int64_t> place(first.begin(), first.end() - 1);
    for (std::size_t i = 0; i < row.size(); ++i) row[at(place[at(groups.of[i])]++)] = static_cast<Vertex>(i);
  }
  std::span<const Vertex> of(Vertex group) const {
    return {row.data() + first[at(group)], at(first[at(group) + 1] - first[at(group)])};
  }
};

/// Tiles one after the other. A tile takes the neighbour with the most neighbours in the tile for each one that is left.
/// This leaves no scattered remains, which would read many columns.
class Growth {
 public:
  Growth(const Rows& rows, const RowGroups& groups, std::int64_t nonzeros) : groups_(groups) {
    const Members members(groups);
    tiles_.order.resize(at(rows.count()));
    of_group_.resize(at(groups.count()));
    for (Vertex g = 0; g < groups.count(); ++g) of_group_[at(g)].left = static_cast<float>(neighbours(g).size());
    std::int64_t placed = 0, held = 0;
    while (placed < rows.count()) {
      const Vertex group = next();
      of_group_[at(group)].taken = true;
      for (const Vertex i : members.of(group)) {
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

  std::span<const Vertex> neighbours(Vertex group) const {
    const auto first = at(groups_.first[at(group)]), last = at(groups_.first[at(group) + 1]);
    return {groups_.neighbour.data() + first, last - first};
  }

  /// The best neighbour of the tile; else the first that an earlier tile left, else the first of all.
  Vertex next() {
    for (; !queue_.empty(); queue_.pop()) {
      const auto [rank, group] = queue_.top();
      if (!of_group_[at(group)].taken && of_group_[at(group)].rank() == rank) return group;  // else it is queued anew
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
    for (const Vertex g : neighbours(group)) {
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

  const RowGroups& groups_;
  RowTiles tiles_;
  std::vector<Group> of_group_;
  std::priority_queue<std::pair<float, Vertex>> queue_;
  std::vector<Vertex> touched_;  ///< neighbours of the tile, in the order in which they became that
  std::deque<Vertex> seeds_;
  Vertex lowest_ = 0;
  std::int32_t tile_ = 0;
};

}  // namespace

RowGroups group_rows(const CsrView& matrix) {
  const Rows rows(matrix);
  RowGroups groups;
  groups.of = leaders(rows, matrix.diagonal);
  std::vector<Vertex> number(groups.of.size());
  Vertex count = 0;
  for (std::size_t i = 0; i < number.size(); ++i)
    if (groups.of[i] == static_cast<Vertex>(i)) number[i] = count++;
  for (Vertex& group : groups.of) group = number[at(group)];
  groups.first.assign(at(count) + 1, 0);

  const Members members(groups);
  std::vector<std::vector<Vertex>> found(at(count));
  parallel_ranges(count, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Vertex> seen(at(count), -1);  // by which group
    for (auto group = static_cast<Vertex>(begin); group < end; ++group) {
      seen[at(group)] = group;
      for (const Vertex i : members.of(group))
        for (std::int64_t k = rows.begin(i); k < rows.end(i); ++k) {
          const std::int64_t column = rows.column(k) - matrix.diagonal;
          if (column < 0 || column >= rows.count()) continue;
          const Vertex other = groups.of[at(column)];
          if (std::exchange(seen[at(other)], group) != group) found[at(group)].push_back(other);
        }
      std::sort(found[at(group)].begin(), found[at(group)].end());
    }
  });
  for (std::size_t g = 0; g < found.size(); ++g) {
    groups.neighbour.insert(groups.neighbour.end(), found[g].begin(), found[g].end());
    groups.first[g + 1] = std::ssize(groups.neighbour);
  }
  return groups;
}

RowTiles tile_rows(const CsrView& matrix, const RowGroups& groups, std::int64_t nonzeros) {
  return Growth(Rows(matrix), groups, nonzeros).take();
}

}  // namespace shardmat
