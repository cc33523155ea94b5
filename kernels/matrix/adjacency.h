// The pattern of a square matrix as an undirected graph.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/csr.h"

namespace shardmat {

/// Neighbours of every vertex in the pattern of A + Aᵀ, without the vertex itself, each once and ascending.
struct Adjacency {
  using Vertex = std::int32_t;

  HostVector<std::int64_t> first;  ///< of a vertex in `neighbour`; room, not all of it used
  HostVector<std::int32_t> degree;
  HostVector<Vertex> neighbour;

  Vertex vertices() const { return static_cast<Vertex>(degree.size()); }
  std::span<const Vertex> of(Vertex v) const {
    return {neighbour.data() + first[static_cast<std::size_t>(v)],
            static_cast<std::size_t>(degree[static_cast<std::size_t>(v)])};
  }
};

/// 40 bytes a row and 8 a nonzero; throws Error(resources) before taking more than there is, or for 2^31 rows and more,
/// Error(usage) unless the matrix is square.
Adjacency adjacency_of(const CsrView& matrix);

}  // namespace shardmat
