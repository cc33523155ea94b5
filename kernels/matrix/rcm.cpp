// Reverse Cuthill-McKee: breadth first from a vertex at the edge of the graph, neighbours by ascending degree, and the whole
// order backwards. E. Cuthill and J. McKee, "Reducing the bandwidth of sparse symmetric matrices", ACM 1969; reversed and
// with the start as of A. George and J. W. H. Liu, "Computer Solution of Large Sparse Positive Definite Systems", 1981.
#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/matrix/adjacency.h"
#include "kernels/matrix/ordering.h"

namespace shardmat {
namespace {

using Vertex = Adjacency::Vertex;

class ReverseCuthillMcKee {
 public:
  explicit ReverseCuthillMcKee(const Adjacency& graph) : graph_(graph), seen_(graph.degree.size(), 0) {
    order_.reserve(graph.degree.size());
  }

  HostVector<std::int64_t> operator()(const Progress& progress) {
    constexpr std::size_t kReportEvery = 1 << 18;
    std::size_t reported = 0;
    for (Vertex v = 0; v < graph_.vertices(); ++v) {
      if (seen_[static_cast<std::size_t>(v)] == kOrdered) continue;
      append(edge_vertex(v));
      if (order_.size() < reported + kReportEvery && order_.size() < seen_.size()) continue;
      report(progress, "ordering", std::ssize(order_), graph_.vertices());
      reported = order_.size();
    }
    return {order_.rbegin(), order_.rend()};
  }

 private:
  static constexpr std::uint32_t kOrdered = std::numeric_limits<std::uint32_t>::max();

  std::int32_t degree(Vertex v) const { return graph_.degree[static_cast<std::size_t>(v)]; }

  /// Breadth first over the component of `start`; its last level, and how many levels there are.
  std::pair<std::span<const Vertex>, int> levels_from(Vertex start) {
    ++search_;
    level_.assign(1, start);
    seen_[static_cast<std::size_t>(start)] = search_;
    int levels = 0;
    std::size_t begin = 0;
    for (std::size_t end = 1; begin < end; ++levels) {
      for (std::size_t i = begin; i < end; ++i)
        for (const Vertex w : graph_.of(level_[i]))
          if (std::uint32_t& seen = seen_[static_cast<std::size_t>(w)]; seen != search_) seen = search_, level_.push_back(w);
      if (level_.size() == end) return {std::span<const Vertex>(level_).subspan(begin), levels + 1};
      begin = end, end = level_.size();
    }
    return {{}, levels};
  }

  /// A vertex of v's component from which it is about as deep as can be: from the one of least degree on, again and again
  /// one of least degree in the last level, while that makes more levels.
  Vertex edge_vertex(Vertex v) {
    constexpr int kMostSearches = 8;
    const auto least = [&](std::span<const Vertex> among) {
      return *std::min_element(among.begin(), among.end(),
                               [&](Vertex a, Vertex b) { return degree(a) != degree(b) ? degree(a) < degree(b) : a < b; });
    };
    if (degree(v) == 0) return v;
    levels_from(v);
    Vertex best = least(level_);
    for (int search = 0, depth = 0; search < kMostSearches; ++search) {
      const auto [last, levels] = levels_from(best);
      if (levels <= depth) break;
      depth = levels;
      best = least(last);
    }
    return best;
  }

  void append(Vertex start) {
    std::size_t next = order_.size();
    order_.push_back(start);
    seen_[static_cast<std::size_t>(start)] = kOrdered;
    for (; next < order_.size(); ++next) {
      const std::size_t begin = order_.size();
      for (const Vertex w : graph_.of(order_[next]))
        if (std::uint32_t& seen = seen_[static_cast<std::size_t>(w)]; seen != kOrdered) seen = kOrdered, order_.push_back(w);
      std::stable_sort(order_.begin() + static_cast<std::ptrdiff_t>(begin), order_.end(),
                       [&](Vertex a, Vertex b) { return degree(a) < degree(b); });
    }
  }

  const Adjacency& graph_;
  std::vector<std::uint32_t> seen_;  ///< by which search, or kOrdered
  std::uint32_t search_ = 0;
  std::vector<Vertex> level_, order_;
};

}  // namespace

HostVector<std::int64_t> order_by_rcm(const CsrView& matrix, const Progress& progress) {
  const Adjacency graph = adjacency_of(matrix);
  return ReverseCuthillMcKee(graph)(progress);
}

}  // namespace shardmat
