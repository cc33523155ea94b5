#include "kernels/matrix/halving.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardmat {
namespace {

using Vertex = Adjacency::Vertex;

class Halving {
 public:
  Halving(const Adjacency& graph, Vertex most)
      : graph_(graph),
        most_(static_cast<std::size_t>(std::max<Vertex>(most, 1))),
        order_(graph.degree.size()),
        part_(order_.size(), 0),
        seen_(order_.size(), 0) {
    std::iota(order_.begin(), order_.end(), 0);
    halve(order_);
  }
  std::vector<Vertex> order() && { return std::move(order_); }

 private:
  /// `vertices` ascend before and, in each part that is made, after.
  void halve(std::span<Vertex> vertices) {
    if (vertices.size() <= most_) return;
    ++parts_;
    for (const Vertex vertex : vertices) part_[static_cast<std::size_t>(vertex)] = parts_;
    walk(vertices, vertices.front());
    walk(vertices, walked_.back());
    std::copy(walked_.begin(), walked_.end(), vertices.begin());
    const std::size_t half = vertices.size() / 2;
    for (const std::span some : {vertices.first(half), vertices.subspan(half)}) {
      std::sort(some.begin(), some.end());
      halve(some);
    }
  }

  /// Breadth first through the last part, from `start`, and then from the first vertex that was not reached.
  void walk(std::span<const Vertex> vertices, Vertex start) {
    walked_.clear();
    ++walks_;
    const auto visit = [&](Vertex vertex) {
      const auto v = static_cast<std::size_t>(vertex);
      if (part_[v] == parts_ && std::exchange(seen_[v], walks_) != walks_) walked_.push_back(vertex);
    };
    visit(start);
    auto next = vertices.begin();
    for (std::size_t at = 0; at < vertices.size(); ++at) {
      while (at == walked_.size()) visit(*next++);
      for (const Vertex other : graph_.of(walked_[at])) visit(other);
    }
  }

  const Adjacency& graph_;
  std::size_t most_;
  std::vector<Vertex> order_, walked_;
  std::vector<std::int32_t> part_, seen_;  ///< numbers of the vertex's part and of the last walk that came to it
  std::int32_t parts_ = 0, walks_ = 0;
};

}  // namespace

std::vector<Adjacency::Vertex> order_by_halving(const Adjacency& graph, Adjacency::Vertex most) {
  return Halving(graph, most).order();
}

}  // namespace shardmat
