#include "runtime/run/node_coordinates.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/memory_limits.h"
#include "runtime/context/context.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/source/hdf5_on_ranks.h"

namespace shardmat {
namespace {

Communicator& ranks_of(const DistributedMatrix& matrix) { return matrix.context().communicator(); }

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

}  // namespace shardmat
