#include "runtime/solvers/incomplete/sparse_inverse.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"

namespace shardmat::incomplete {
namespace {

using multigrid::at;
using multigrid::NodeRows;
using multigrid::Nodes;
using multigrid::WithGhostRows;

constexpr int kMostRow = 384;             ///< unknowns of a dense system: of longer rows the strongest couplings count
constexpr double kLeastDiagonal = 1e-14;  ///< of the diagonal entry: a smaller pivot counts as 0

/// Rows of `nodes`, own ones and ghosts, with columns among them.
struct KnownRows {
  const Nodes& nodes;
  const WithGhostRows& rows;
  HostVector<std::int32_t> number;  ///< of the columns of `rows`, among the nodes; -1: their rows are not known
  HostVector<double> diagonal;      ///< Frobenius norms of the diagonal blocks

  KnownRows(const Nodes& of, const WithGhostRows& with) : nodes(of), rows(with) {
    number.resize(at(rows.cols()->local_count()), -1);
    for (std::int64_t i = 0; i < nodes.local_count(); ++i)
      number[at(rows.cols()->local(nodes.global(i)))] = static_cast<std::int32_t>(i);
    diagonal.resize(at(nodes.local_count()), 0);
    for (std::int64_t i = 0; i < nodes.local_count(); ++i)
      each(i, [&](std::int32_t j, const double* block) {
        if (j == i) diagonal[at(i)] = norm(block);
      });
  }
  /// use(node, block) for the blocks of row i whose columns are known.
  template <class Use>
  void each(std::int64_t i, const Use& use) const {
    rows.each_block(i, [&](std::int32_t column, const double* block) {
      if (number[at(column)] >= 0) use(number[at(column)], block);
    });
  }
  double norm(const double* block) const {
    double squares = 0;
    for (int e = 0; e < rows.col_size() * rows.col_size(); ++e) squares += block[e] * block[e];
    return std::sqrt(squares);
  }
};

/// What a thread needs for its rows.
class RowMaker {
 public:
  RowMaker(const KnownRows& known, const InversePattern& pattern)
      : known_(known), pattern_(pattern), size_(known.rows.col_size()), place_(at(known.nodes.local_count()), -1) {}

  /// The nodes of row i in G, ascending by their numbers: the last one is i.
  const std::vector<std::int32_t>& find_nodes(std::int64_t i) {
    found_.clear();
    strength_.clear();
    const std::int64_t row = known_.nodes.global(i);
    const auto strong = [&](std::int64_t k, std::int32_t j, const double* block) {
      return known_.norm(block) / std::sqrt(known_.diagonal[at(k)] * known_.diagonal[at(j)]);
    };
    const auto take = [&](std::int32_t j, double strength) {
      if (known_.nodes.global(j) >= row || strength < pattern_.drop_tolerance) return;
      if (place_[at(j)] < 0)
        place_[at(j)] = static_cast<std::int32_t>(std::ssize(found_)), found_.push_back(j), strength_.push_back(0);
      double& now = strength_[at(place_[at(j)])];
      now = std::max(now, strength);
    };
    known_.each(i, [&](std::int32_t k, const double* block) {
      const double first = strong(i, k, block);
      if (k != i) take(k, first);
      if (k == i || pattern_.powers == 1 || first < pattern_.drop_tolerance) return;
      known_.each(k, [&](std::int32_t j, const double* next) {
        if (j != i) take(j, first * strong(k, j, next));
      });
    });
    const auto most = at(std::max(1, kMostRow / size_) - 1);
    if (found_.size() > most) {
      order_.resize(found_.size());
      for (std::size_t k = 0; k < order_.size(); ++k) order_[k] = {-strength_[k], found_[k]};
      std::nth_element(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(most), order_.end());
      for (std::size_t k = 0; k < order_.size(); ++k) {
        if (k >= most) place_[at(order_[k].second)] = -1;
        else found_[k] = order_[k].second;
      }
      found_.resize(most);
    }
    std::sort(found_.begin(), found_.end(),
              [&](std::int32_t a, std::int32_t b) { return known_.nodes.global(a) < known_.nodes.global(b); });
    found_.push_back(static_cast<std::int32_t>(i));
    for (std::size_t k = 0; k < found_.size(); ++k) place_[at(found_[k])] = static_cast<std::int32_t>(k);
    return found_;
  }

  /// Before the next find_nodes(), if solve() is not called.
  void forget() {
    for (const std::int32_t j : found_) place_[at(j)] = -1;
  }

  /// The rows of node i: blocks of find_nodes(i). False: no positive definite system.
  bool solve(double* blocks) {
    const std::int64_t nodes = std::ssize(found_), s = size_, n = nodes * s;
    dense_.assign(at(n * n), 0);
    for (std::int64_t p = 0; p < nodes; ++p)
      known_.each(found_[at(p)], [&](std::int32_t j, const double* block) {
        const std::int64_t q = place_[at(j)];
        if (q < 0 || q > p) return;
        for (std::int64_t r = 0; r < s; ++r) std::copy_n(block + r * s, s, dense_.data() + (p * s + r) * n + q * s);
      });
    forget();
    if (!factorise(n)) return false;
    // Row u of G solves with the leading part of L that ends at u.
    solution_.resize(at(n));
    for (std::int64_t u = n - s; u < n; ++u) {
      std::fill(solution_.begin(), solution_.end(), 0);
      solution_[at(u)] = 1;
      for (std::int64_t k = u; k >= 0; --k) {
        const double* const l = dense_.data() + k * n;
        const double value = solution_[at(k)] /= l[k];
        for (std::int64_t c = 0; c < k; ++c) solution_[at(c)] -= l[c] * value;
      }
      for (std::int64_t p = 0; p < nodes; ++p) std::copy_n(solution_.data() + p * s, s, blocks + (p * s + u - (n - s)) * s);
    }
    return true;
  }

 private:
  /// L of the lower triangle, in place.
  bool factorise(std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) {
      double* const row = dense_.data() + k * n;
      const double given = row[k];
      for (std::int64_t j = 0; j <= k; ++j) {
        const double* const other = dense_.data() + j * n;
        double sum = 0;
        for (std::int64_t c = 0; c < j; ++c) sum += row[c] * other[c];
        if (j < k) row[j] = (row[j] - sum) / other[j];
        else row[k] -= sum;
      }
      if (!(row[k] > kLeastDiagonal * given) || !std::isfinite(row[k])) return false;
      row[k] = std::sqrt(row[k]);
    }
    return true;
  }

  const KnownRows& known_;
  const InversePattern& pattern_;
  int size_;
  HostVector<std::int32_t> place_;  ///< in found_, of each node; -1: none
  std::vector<std::int32_t> found_;
  std::vector<double> strength_;
  std::vector<std::pair<double, std::int32_t>> order_;
  HostVector<double> dense_, solution_;
};

NodeRows rows_of_inverse(const NodeRows& a, const std::shared_ptr<const Nodes>& nodes, const InversePattern& pattern) {
  const WithGhostRows rows(a, nodes);
  const int s = a.row_size;
  NodeRows g{s, s, a.rows, nodes, {}, {}, {}};
  a.rows->ranks().run_agreed([&] {
    const KnownRows known(*nodes, rows);
    g.start.assign(at(a.count() + 1), 0);
    parallel_ranges(a.count(), a.grain(), [&](std::int64_t begin, std::int64_t end) {
      RowMaker maker(known, pattern);
      for (std::int64_t i = begin; i < end; ++i) {
        g.start[at(i + 1)] = std::ssize(maker.find_nodes(i));
        maker.forget();
      }
    });
    for (std::int64_t i = 0; i < a.count(); ++i) g.start[at(i + 1)] += g.start[at(i)];
    require_host_memory(g.start.back() * (8 * s * s + 4), "a sparse approximate inverse");
    g.column.resize(at(g.start.back())), g.value.resize(at(g.start.back() * s * s));
    std::atomic<std::int64_t> bad = -1;
    parallel_ranges(a.count(), grain_of(a.count(), 8 * a.blocks() * s * s), [&](std::int64_t begin, std::int64_t end) {
      RowMaker maker(known, pattern);
      std::vector<std::pair<std::int32_t, std::int64_t>> order;
      HostVector<double> blocks;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::vector<std::int32_t> found = maker.find_nodes(i);
        blocks.resize(found.size() * at(s * s));
        if (!maker.solve(blocks.data())) {
          bad = i;
          return;
        }
        order.clear();
        for (std::size_t k = 0; k < found.size(); ++k) order.emplace_back(found[k], static_cast<std::int64_t>(k));
        std::sort(order.begin(), order.end());
        std::int64_t to = g.start[at(i)];
        for (const auto& [node, k] : order) {
          g.column[at(to)] = node;
          std::copy_n(blocks.data() + k * s * s, s * s, g.block(to++));
        }
      }
    });
    if (bad >= 0)
      throw Error(
          ErrorKind::input,
          fmt::format("the sparse approximate inverse is for positive definite matrices, and around row {} this one is "
                      "not; take ilu",
                      (a.rows->first() + bad) * s),
          "preconditioner");
  });
  return g;
}

}  // namespace

NodeRows sparse_inverse(const NodeRows& a, const InversePattern& pattern) {
  if (pattern.powers == 1) return rows_of_inverse(a, a.cols, pattern);
  return rows_of_inverse(a, WithGhostRows(a, a.cols).cols(), pattern);
}

}  // namespace shardmat::incomplete
