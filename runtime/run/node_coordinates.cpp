#include "runtime/run/node_coordinates.h"

#include <cstdint>

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

}  // namespace shardmat
