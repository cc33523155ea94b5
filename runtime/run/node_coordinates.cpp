#include "runtime/run/node_coordinates.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>

#include "comm/communicator.h"
#include "runtime/context/context.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/preconditioner.h"

namespace shardmat {

std::shared_ptr<const NodeCoordinates> find_node_coordinates(const DistributedMatrix& matrix, const RowSource& source,
                                                             const std::string& file) {
  const std::int64_t size = block_jacobi_size(matrix), nodes = matrix.rows() / size;
  return matrix.context().communicator().run_agreed([&]() -> std::shared_ptr<const NodeCoordinates> {
    HostVector<std::int64_t> of_nodes;
    const HostVector<std::int64_t> ids = matrix.y_rows()->ids_by_place();
    for (std::size_t i = 0; i < ids.size(); i += static_cast<std::size_t>(size)) of_nodes.push_back(ids[i] / size);
    auto found = std::make_shared<NodeCoordinates>();
    if (!file.empty()) {
      found->dimensions = size == 2 ? 2 : 3;
      found->of_own = collect(*open_vector(file, "coordinates", nodes, 0, found->dimensions), of_nodes);
      return found;
    }
    if (source.placed_nodes() != nodes) return nullptr;
    for (std::size_t i = 0; i < of_nodes.size();) {
      std::size_t end = i + 1;
      while (end < of_nodes.size() && of_nodes[end] == of_nodes[end - 1] + 1) ++end;
      const HostVector<double> some = source.coordinates(of_nodes[i], of_nodes[end - 1] + 1);
      found->of_own.insert(found->of_own.end(), some.begin(), some.end());
      i = end;
    }
    return found;
  });
}

std::shared_ptr<const MidEdgeNodes> find_mid_edge_nodes(const DistributedMatrix& matrix, const RowSource& source) {
  const std::int64_t size = block_jacobi_size(matrix), nodes = matrix.rows() / size;
  return matrix.context().communicator().run_agreed([&]() -> std::shared_ptr<const MidEdgeNodes> {
    if (source.placed_nodes() != nodes) return nullptr;
    const auto all = source.mid_edges();
    if (all.empty()) return nullptr;
    std::unordered_map<std::int64_t, const std::array<std::int64_t, 3>*> line;
    for (const auto& of_node : all) line[of_node[0]] = &of_node;
    auto found = std::make_shared<MidEdgeNodes>();
    HostVector<std::int64_t> ids = matrix.y_rows()->ids_by_place();
    std::sort(ids.begin(), ids.end());
    for (std::size_t i = 0; i < ids.size(); i += static_cast<std::size_t>(size))
      if (const auto of_node = line.find(ids[i] / size); of_node != line.end())
        found->of_own.insert(found->of_own.end(), of_node->second->begin(), of_node->second->end());
    return found;
  });
}

}  // namespace shardmat
