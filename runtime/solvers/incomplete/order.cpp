#include "runtime/solvers/incomplete/order.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "kernels/matrix/adjacency.h"
#include "kernels/matrix/ordering.h"
#include "runtime/solvers/multigrid/pairwise.h"

namespace shardmat::incomplete {
namespace {

constexpr std::int64_t kLeastEntries = 4 * kWorkOfAThread;  ///< of a piece
constexpr double kMostBetween = 0.2;                        ///< of all rows

/// Pieces of an order, and which rows lie between them.
struct Cut {
  std::vector<std::int64_t> start;  ///< positions in the order, then the end
  HostVector<std::int32_t> piece;   ///< of each row of the matrix
  HostVector<char> between;         ///< of each row: coupled with a row of an earlier piece
  std::int64_t rows_between = 0;
};

Cut cut(const SquareRows& a, const HostVector<std::int32_t>& row, int pieces) {
  const std::int64_t n = a.count(), all = std::ssize(a.column);
  Cut c{{0}, HostVector<std::int32_t>(at(n)), HostVector<char>(at(n), 0)};
  std::int64_t entries = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t p = std::ssize(c.start);
    if (p < pieces && entries >= all / pieces * p) c.start.push_back(i);
    c.piece[at(row[at(i)])] = static_cast<std::int32_t>(c.start.size() - 1);
    entries += a.start[at(row[at(i)]) + 1] - a.start[at(row[at(i)])];
  }
  c.start.push_back(n);
  parallel_ranges(n, grain_of(n, all), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
        const std::int64_t j = a.column[at(k)];
        if (c.piece[at(i)] == c.piece[at(j)]) continue;
        const std::int64_t later = c.piece[at(i)] > c.piece[at(j)] ? i : j;
        std::atomic_ref<char>(c.between[at(later)]).store(1, std::memory_order_relaxed);
      }
  });
  c.rows_between = std::count(c.between.begin(), c.between.end(), 1);
  return c;
}

/// Colours for the rows between pieces, a colour for those of each piece: those of one colour are not coupled, and no row
/// within a piece is coupled with two of them.
std::vector<std::size_t> colours_between(const SquareRows& a, const Cut& c) {
  const std::size_t pieces = c.start.size() - 1;
  // Of the rows between of piece p: coupled with those of piece q, and with the other rows of q.
  std::vector<char> meets(pieces * pieces, 0), touches(pieces * pieces, 0);
  for (std::int64_t i = 0; i < a.count(); ++i)
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
      const std::int64_t j = a.column[at(k)];
      const auto p = static_cast<std::size_t>(c.piece[at(i)]), q = static_cast<std::size_t>(c.piece[at(j)]);
      const bool i_between = c.between[at(i)] != 0, j_between = c.between[at(j)] != 0;
      if (i_between && j_between) meets[p * pieces + q] = meets[q * pieces + p] = 1;
      else if (i_between) touches[p * pieces + q] = 1;
      else if (j_between) touches[q * pieces + p] = 1;
    }
  std::vector<std::size_t> colour(pieces, 0);
  for (std::size_t p = 1; p < pieces; ++p) {
    std::vector<char> taken(pieces + 1, 0);
    for (std::size_t q = 1; q < p; ++q) {
      bool coupled = meets[p * pieces + q] != 0;
      for (std::size_t m = 0; m < pieces; ++m)
        coupled = coupled || (touches[p * pieces + m] != 0 && touches[q * pieces + m] != 0);
      if (coupled) taken[colour[q]] = 1;
    }
    colour[p] = static_cast<std::size_t>(std::find(taken.begin(), taken.end(), 0) - taken.begin());
  }
  return colour;
}

/// Calls use(the pattern of blocks as a matrix).
template <class Use>
auto with_pattern(const SquareRows& a, const Use& use) {
  const HostVector<std::int64_t> columns(a.column.begin(), a.column.end());
  const HostVector<double> ones(a.column.size(), 1);
  return use(CsrView{a.count(), a.count(), a.start, columns, ones});
}

HostVector<std::int32_t> rcm_order(const SquareRows& a) {
  const HostVector<std::int64_t> order = with_pattern(a, [](const CsrView& pattern) { return order_by_rcm(pattern); });
  HostVector<std::int32_t> rows(order.size());
  std::transform(order.begin(), order.end(), rows.begin(), [](std::int64_t row) { return static_cast<std::int32_t>(row); });
  return rows;
}

/// ‖A_ij‖ + ‖A_ji‖.
multigrid::Weights weights_of(const SquareRows& a) {
  const std::int64_t n = a.count(), entries = a.block_entries();
  const auto norm = [&](std::int64_t k) {
    return std::sqrt(std::inner_product(a.block(k), a.block(k) + entries, a.block(k), 0.0));
  };
  multigrid::Weights g;
  g.start.resize(at(n + 1));
  for (std::int64_t i = 0; i <= n; ++i) g.start[at(i)] = a.start[at(i)] - i;  // without the diagonal
  g.node.resize(at(g.start.back())), g.weight.resize(g.node.size());
  parallel_ranges(n, grain_of(n, std::ssize(a.value)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t k = a.start[at(i)], to = g.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
        const std::int32_t j = a.column[at(k)];
        if (j == i) continue;
        const auto row = a.column.begin() + a.start[at(j)], row_end = a.column.begin() + a.start[at(j) + 1],
                   back = std::lower_bound(row, row_end, static_cast<std::int32_t>(i));
        g.node[at(to)] = j;
        g.weight[at(to++)] = norm(k) + (back != row_end && *back == i ? norm(back - a.column.begin()) : 0);
      }
  });
  return g;
}

/// Rows that stay together, ascending; clusters stand in the order of their first rows.
struct Clusters {
  HostVector<std::int32_t> of, start{0}, row;
  std::int32_t count() const { return static_cast<std::int32_t>(start.size()) - 1; }
};

/// `of`: of each row, any numbers.
Clusters clusters_of(const HostVector<std::int32_t>& of, std::int64_t numbers) {
  Clusters c;
  HostVector<std::int32_t> number(at(numbers), -1);
  for (const std::int32_t old : of) {
    if (number[at(old)] < 0) number[at(old)] = c.count(), c.start.push_back(0);
    c.of.push_back(number[at(old)]);
    ++c.start[at(number[at(old)]) + 1];
  }
  std::partial_sum(c.start.begin(), c.start.end(), c.start.begin());
  HostVector<std::int32_t> next = c.start;
  c.row.resize(of.size());
  for (std::int32_t i = 0; i < std::ssize(of); ++i) c.row[at(next[at(c.of[at(i)])]++)] = i;
  return c;
}

/// The least colour that no cluster within `reach` couplings has, cluster after cluster.
HostVector<std::int32_t> find_colours(const SquareRows& a, const Clusters& clusters, int reach) {
  const Adjacency graph = with_pattern(a, [](const CsrView& pattern) { return adjacency_of(pattern); });
  HostVector<std::int32_t> colour(at(clusters.count()), -1), met;
  std::vector<std::int32_t> taken_by;  // of each colour: the last cluster that may not have it
  for (std::int32_t i = 0; i < clusters.count(); ++i) {
    met.assign(clusters.row.begin() + clusters.start[at(i)], clusters.row.begin() + clusters.start[at(i) + 1]);
    std::size_t looked = 0;
    for (int steps = 1; steps <= reach; ++steps)
      for (const std::size_t ring = met.size(); looked < ring; ++looked)
        for (const std::int32_t j : graph.of(met[looked])) {
          if (const std::int32_t taken = colour[at(clusters.of[at(j)])]; taken >= 0) taken_by[at(taken)] = i;
          if (steps < reach) met.push_back(j);
        }
    const auto least = std::find_if(taken_by.begin(), taken_by.end(), [i](std::int32_t other) { return other != i; });
    colour[at(i)] = static_cast<std::int32_t>(least - taken_by.begin());
    if (least == taken_by.end()) taken_by.push_back(-1);
  }
  return colour;
}

int pieces_worth(const SquareRows& a, int pieces) {
  return static_cast<int>(std::min<std::int64_t>(pieces, std::ssize(a.value) / kLeastEntries));
}

void put_positions(Order& order) {
  order.position.resize(order.row.size());
  for (std::int64_t i = 0; i < order.count(); ++i) order.position[at(order.row[at(i)])] = static_cast<std::int32_t>(i);
}

}  // namespace

SquareRows own_square(multigrid::NodeRows rows) {
  SquareRows a{rows.row_size, std::move(rows.start), std::move(rows.column), std::move(rows.value)};
  const std::int64_t entries = a.block_entries(), own = a.count();
  if (rows.cols->local_count() == own) return a;
  std::int64_t to = 0;
  for (std::int64_t i = 0, begin = 0; i < own; ++i) {
    const std::int64_t end = a.start[at(i + 1)];
    for (std::int64_t k = begin; k < end && a.column[at(k)] < own; ++k, ++to) {  // ghosts stand behind
      a.column[at(to)] = a.column[at(k)];
      if (to != k) std::copy_n(a.value.data() + k * entries, entries, a.value.data() + to * entries);
    }
    begin = end, a.start[at(i + 1)] = to;
  }
  a.column.resize(at(to)), a.value.resize(at(to * entries));
  return a;
}

bool is_scattered(const SquareRows& a) {
  constexpr std::int64_t kFewRows = 1000;
  constexpr double kFar = 0.1;  ///< of all rows; in a cube of 1,000 nodes with 27 points it is 0.07
  double distances = 0;
  for (std::int64_t i = 0; i < a.count(); ++i)
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k)
      distances += static_cast<double>(std::abs(a.column[at(k)] - i));
  return a.count() >= kFewRows &&
         distances > kFar * static_cast<double>(a.count()) * static_cast<double>(std::ssize(a.column));
}

Order find_order(const SquareRows& a, bool rcm, int pieces) {
  const std::int64_t n = a.count();
  Order order;
  if (rcm) {
    order.row = rcm_order(a);
  } else {
    order.row.resize(at(n));
    std::iota(order.row.begin(), order.row.end(), 0);
  }
  pieces = pieces_worth(a, pieces);
  Cut c;
  for (; pieces > 1; pieces /= 2) {
    c = cut(a, order.row, pieces);
    if (static_cast<double>(c.rows_between) <= kMostBetween * static_cast<double>(n)) break;
  }
  if (pieces > 1) {
    const std::size_t all = c.start.size() - 1;
    const std::vector<std::size_t> colour = colours_between(a, c);
    const HostVector<std::int32_t> before = std::exchange(order.row, {});
    order.row.reserve(at(n));
    const auto add_group = [&](std::size_t p, char between) {
      for (std::int64_t i = c.start[p]; i < c.start[p + 1]; ++i)
        if (c.between[at(before[at(i)])] == between) order.row.push_back(before[at(i)]);
      order.group.push_back(static_cast<std::int32_t>(order.row.size()));
    };
    for (std::size_t p = 0; p < all; ++p) add_group(p, 0);
    order.phase.push_back(order.groups());
    for (std::size_t now = 0; now <= *std::max_element(colour.begin(), colour.end()); ++now) {
      for (std::size_t p = 1; p < all; ++p)
        if (colour[p] == now) add_group(p, 1);
      order.phase.push_back(order.groups());
    }
  } else if (n > 0) {
    order.group.push_back(static_cast<std::int32_t>(n)), order.phase.push_back(1);
  }
  put_positions(order);
  return order;
}

Order order_by_colours(const SquareRows& a, int matching, int levels, bool fills, int pieces) {
  constexpr int kMostReach = 3;
  const std::int64_t n = a.count();
  Clusters clusters;
  if (matching == 0) {
    HostVector<std::int32_t> each(at(n));
    std::iota(each.begin(), each.end(), 0);
    clusters = clusters_of(each, n);
  } else {
    const multigrid::Aggregates matched = multigrid::match_pairs(weights_of(a), {}, 0, matching);
    clusters = clusters_of(matched.of_node, matched.count);
  }
  const HostVector<std::int32_t> colour = find_colours(a, clusters, std::min(levels + 1, kMostReach));
  const std::int32_t colours = n == 0 ? 0 : *std::max_element(colour.begin(), colour.end()) + 1;
  HostVector<std::int32_t> start(at(colours) + 1, 0);  // rows of each colour
  for (std::int32_t c = 0; c < clusters.count(); ++c)
    start[at(colour[at(c)]) + 1] += clusters.start[at(c) + 1] - clusters.start[at(c)];
  std::partial_sum(start.begin(), start.end(), start.begin());
  Order order;
  order.row.resize(at(n));
  HostVector<char> begins(at(n) + 1, 0);  // a cluster, at each position
  HostVector<std::int32_t> next = start;
  for (std::int32_t c = 0; c < clusters.count(); ++c) {
    std::int32_t& to = next[at(colour[at(c)])];
    begins[at(to)] = 1;
    for (std::int32_t k = clusters.start[at(c)]; k < clusters.start[at(c) + 1]; ++k)
      order.row[at(to++)] = clusters.row[at(k)];
  }
  put_positions(order);
  if (fills || levels >= kMostReach) {
    if (n > 0) order.group.push_back(static_cast<std::int32_t>(n)), order.phase.push_back(1);
    return order;
  }
  const std::int32_t groups = std::max(1, pieces_worth(a, pieces));
  for (std::int32_t c = 0; c < colours; ++c) {
    const std::int32_t begin = start[at(c)], end = start[at(c) + 1], each = (end - begin + groups - 1) / groups;
    for (std::int32_t i = begin + 1; i <= end; ++i)
      if (i == end || (begins[at(i)] != 0 && i - order.group.back() >= each)) order.group.push_back(i);
    order.phase.push_back(order.groups());
  }
  return order;
}

std::optional<int> matching_of(const std::string& order) {
  constexpr int kUsual = 3;
  const std::string clusters = "clusters:";
  if (order == "colours") return 0;
  if (order == "clusters") return kUsual;
  const bool one_digit = order.size() == clusters.size() + 1 && order.back() >= '1' && order.back() <= '9';
  if (one_digit && order.compare(0, clusters.size(), clusters) == 0) return order.back() - '0';
  return std::nullopt;
}

}  // namespace shardmat::incomplete
