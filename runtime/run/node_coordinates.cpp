#include "runtime/run/node_coordinates.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/memory_limits.h"
#include "runtime/context/context.h"
#include "runtime/matrix/vectors.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/source/hdf5_on_ranks.h"

namespace shardmat {
namespace {

Communicator& ranks_of(const DistributedMatrix& matrix) { return matrix.context().communicator(); }

/// The numbers in the source of this rank's nodes of `size` unknowns.
HostVector<std::int64_t> own_nodes(const DistributedMatrix& matrix, std::int64_t size) {
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

/// Of rank 0 to all ranks.
template <class T>
void share(std::vector<T, UninitialisedAllocator<T>>& all, Communicator& ranks) {
  std::int64_t count = std::ssize(all);
  ranks.broadcast(std::span(&count, 1));
  ranks.run_agreed([&] {
    require_host_memory(static_cast<std::int64_t>(sizeof(T)) * count, "the nodes of a mesh");
    all.resize(static_cast<std::size_t>(count));
  });
  ranks.broadcast(std::span(all));
}

/// Rank 0 reads the mesh: it alone knows what the rows are called.
PlacedMesh place_on_rank_0(const std::string& file, const RowSource& source, std::int64_t size, Communicator& ranks) {
  PlacedMesh mesh;
  HostVector<MidEdge> middles;
  ranks.run_agreed([&] {
    if (ranks.rank() != 0) return;
    mesh = place_mesh(file, source, size);
    middles.assign(mesh.mid_edges.begin(), mesh.mid_edges.end());
  });
  ranks.broadcast(std::span(&mesh.near_null_count, 1));
  share(mesh.coordinates, ranks), share(mesh.near_null_vectors, ranks), share(middles, ranks);
  mesh.mid_edges.assign(middles.begin(), middles.end());
  return mesh;
}

}  // namespace

std::unique_ptr<const NodeFacts> open_nodes(const DistributedMatrix& matrix, const RowSource& source,
                                            const NodeFiles& files) {
  for (const Hdf5Input& input : files.hdf5_inputs()) describe_on_all_ranks(input, ranks_of(matrix));
  const std::int64_t size = block_jacobi_size(matrix);
  std::optional<PlacedMesh> mesh;
  if (is_mesh_file(files.coordinates)) mesh = place_on_rank_0(files.coordinates, source, size, ranks_of(matrix));
  return ranks_of(matrix).run_agreed([&] { return open_node_files(files, source, size, std::move(mesh)); });
}

std::shared_ptr<const NodeCoordinates> find_node_coordinates(const DistributedMatrix& matrix, const NodeFacts& nodes) {
  const std::int64_t size = block_jacobi_size(matrix);
  return ranks_of(matrix).run_agreed([&]() -> std::shared_ptr<const NodeCoordinates> {
    if (nodes.placed_nodes() != matrix.rows() / size) return nullptr;
    auto found = std::make_shared<NodeCoordinates>();
    const FactsVector places(NodeFacts::kDimensions,
                             [&](std::int64_t begin, std::int64_t end) { return nodes.coordinates(begin, end); });
    found->of_own = collect(places, own_nodes(matrix, size));
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
  return ranks_of(matrix).run_agreed([&]() -> std::shared_ptr<const MidEdgeNodes> {
    if (nodes.placed_nodes() != 0 && nodes.placed_nodes() != matrix.rows() / size) return nullptr;
    const std::vector<MidEdge> all = nodes.mid_edges();
    if (all.empty()) return nullptr;
    HostVector<std::int64_t> own = own_nodes(matrix, size);
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
  return ranks_of(matrix).run_agreed([&] {
    const int count = nodes.near_null_count();
    const FactsVector vectors(count,
                              [&](std::int64_t begin, std::int64_t end) { return nodes.near_null_vectors(begin, end); });
    return std::make_shared<const NearNullVectors>(
        NearNullVectors{count, collect(vectors, matrix.y_rows()->ids_by_place())});
  });
}

}  // namespace shardmat
