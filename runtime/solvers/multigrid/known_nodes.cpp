#include "runtime/solvers/multigrid/known_nodes.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "runtime/context/context.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat {
namespace {

/// The numbers in the source of this rank's nodes of `size` unknowns.
HostVector<std::int64_t> numbers_of_own_nodes(const DistributedMatrix& matrix, std::int64_t size) {
  HostVector<std::int64_t> nodes;
  const HostVector<std::int64_t> ids = matrix.y_rows()->ids_by_place();
  for (std::size_t i = 0; i < ids.size(); i += static_cast<std::size_t>(size)) nodes.push_back(ids[i] / size);
  return nodes;
}

/// Facts as collect() reads them.
class FactsVector final : public VectorSource {
 public:
  using Read = std::function<HostVector<double>(std::int64_t, std::int64_t)>;
  FactsVector(int columns, Read read) : columns_(columns), read_(std::move(read)) {}
  std::string name() const override { return "nodes"; }
  std::int64_t columns() const override { return columns_; }
  HostVector<double> read(std::int64_t begin, std::int64_t end) const override { return read_(begin, end); }

 private:
  int columns_;
  Read read_;
};

NodeCoordinates with_axes(const HostVector<double>& places, const HostVector<double>& axes) {
  NodeCoordinates both{NodeCoordinates::kWithAxes, {}};
  for (auto place = places.begin(), of_node = axes.begin(); place != places.end(); place += 3, of_node += 9) {
    both.of_own.insert(both.of_own.end(), place, place + 3);
    both.of_own.insert(both.of_own.end(), of_node, of_node + 9);
  }
  return both;
}

/// With the order of the unknowns of each node, which reverse Cuthill-McKee turns round. Where a node has a displacement
/// along each global axis and no more, the axes are turned round in its place.
std::shared_ptr<const NodeCoordinates> by_unknowns(const DistributedMatrix& matrix,
                                                   const std::shared_ptr<const NodeCoordinates>& given) {
  if (matrix.y_rows()->is_range() && matrix.y_rows()->in_source_order()) return given;
  const std::int64_t size = block_jacobi_size(matrix);
  const HostVector<std::int64_t> ids = matrix.y_rows()->ids_by_place();
  const auto unknown_of = [&](std::int64_t i) { return ids[static_cast<std::size_t>(i)] % size; };
  bool ascending = true;
  for (std::int64_t i = 0; i < std::ssize(ids); ++i) ascending = ascending && unknown_of(i) == i % size;
  if (ascending) return given;
  NodeCoordinates turned = *given;
  if (given->dimensions == size && ids.size() == given->of_own.size()) {
    for (std::int64_t i = 0; i < std::ssize(ids); ++i)
      turned.of_own[static_cast<std::size_t>(i)] = given->of_own[static_cast<std::size_t>(i - i % size + unknown_of(i))];
  } else {
    for (std::int64_t i = 0; i < std::ssize(ids); ++i) turned.unknowns.push_back(static_cast<char>(unknown_of(i)));
  }
  return std::make_shared<const NodeCoordinates>(std::move(turned));
}

}  // namespace

std::shared_ptr<const NodeCoordinates> find_node_coordinates(const DistributedMatrix& matrix, const NodeFacts& nodes) {
  const std::int64_t size = block_jacobi_size(matrix);
  return matrix.context().communicator().run_agreed([&]() -> std::shared_ptr<const NodeCoordinates> {
    if (nodes.placed_nodes() != matrix.rows() / size) return nullptr;
    auto found = std::make_shared<NodeCoordinates>();
    const FactsVector places(NodeFacts::kDimensions,
                             [&](std::int64_t begin, std::int64_t end) { return nodes.coordinates(begin, end); });
    const RowMap& map = *matrix.y_rows();
    const bool in_order = map.is_range() && map.in_source_order() && map.ids().front() % size == 0;
    HostVector<std::int64_t> own;
    if (in_order && map.local_rows() % size == 0 && !nodes.has_axes()) {
      found->of_own = nodes.coordinates(map.ids().front() / size, (map.ids().back() + 1) / size);
    } else {
      own = numbers_of_own_nodes(matrix, size);
      found->of_own = collect(places, own);
    }
    if (nodes.has_axes()) {
      const FactsVector axes(NodeFacts::kAxes, [&](std::int64_t begin, std::int64_t end) { return nodes.axes(begin, end); });
      *found = with_axes(found->of_own, collect(axes, own));
      return found;
    }
    if (size != 2) return found;
    found->dimensions = 2;
    HostVector<double>& all = found->of_own;
    for (std::size_t i = 0; i < all.size(); i += 3) std::copy_n(&all[i], 2, &all[i / 3 * 2]);
    all.resize(all.size() / 3 * 2);
    return found;
  });
}

std::shared_ptr<const MidEdgeNodes> find_mid_edges(const DistributedMatrix& matrix, const NodeFacts& nodes) {
  const std::int64_t size = block_jacobi_size(matrix);
  return matrix.context().communicator().run_agreed([&]() -> std::shared_ptr<const MidEdgeNodes> {
    if (nodes.placed_nodes() != 0 && nodes.placed_nodes() != matrix.rows() / size) return nullptr;
    const std::vector<MidEdge> all = nodes.mid_edges();
    if (all.empty()) return nullptr;
    HostVector<std::int64_t> own = numbers_of_own_nodes(matrix, size);
    std::sort(own.begin(), own.end());
    auto found = std::make_shared<MidEdgeNodes>();
    auto next = own.begin();
    for (const MidEdge& edge : all) {
      next = std::lower_bound(next, own.end(), edge[0]);
      if (next == own.end()) break;
      if (*next == edge[0]) found->of_own.insert(found->of_own.end(), edge.begin(), edge.end());
    }
    return found;
  });
}

std::shared_ptr<const NearNullVectors> find_near_null_vectors(const DistributedMatrix& matrix, const NodeFacts& nodes) {
  if (nodes.near_null_count() == 0) return nullptr;
  return matrix.context().communicator().run_agreed([&] {
    const int count = nodes.near_null_count();
    const FactsVector vectors(count,
                              [&](std::int64_t begin, std::int64_t end) { return nodes.near_null_vectors(begin, end); });
    return std::make_shared<const NearNullVectors>(
        NearNullVectors{count, collect(vectors, matrix.y_rows()->ids_by_place())});
  });
}

void take_known_nodes(const DistributedMatrix& matrix, MultigridOptions& options) {
  Communicator& ranks = matrix.context().communicator();
  if (const NodeFacts* const nodes = matrix.nodes(); nodes != nullptr) {
    // Where only some ranks give something, near_null_space() refuses it.
    int given[] = {options.coordinates ? 1 : 0, options.mid_edges ? 1 : 0, options.near_null_vectors ? 1 : 0};
    ranks.all_reduce(std::span<int>(given), Reduction::max);
    const bool may_turn = block_jacobi_size(matrix) > 1 || options.near_null_space == "rigid";
    if (given[0] == 0 && may_turn) options.coordinates = find_node_coordinates(matrix, *nodes);
    if (given[1] == 0) options.mid_edges = find_mid_edges(matrix, *nodes);
    if (given[2] == 0 && options.near_null_space == "auto")
      options.near_null_vectors = find_near_null_vectors(matrix, *nodes);
  }
  ranks.run_agreed([&] {
    if (options.coordinates) options.coordinates = by_unknowns(matrix, options.coordinates);
  });
}

}  // namespace shardmat
