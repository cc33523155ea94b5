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

  HostVector<std::int64_t> first;  ///< first position of each vertex in `neighbour`; unused room may follow its neighbours
  HostVector<std::int32_t> degree;
  HostVector<Vertex> neighbour;

  Vertex vertices() const { return static_cast<Vertex>(degree.size()); }
  std::span<const Vertex> of(Vertex v) const {
    return {neighbour.data() + first[static_cast<std::size_t>(v)],
            static_cast<std::size_t>(degree[static_cast<std::size_t>(v)])};
  }
};

/// Takes 40 bytes a row and 8 bytes a nonzero. Throws Error(resources) before allocating more memory than there is, and for
/// 2^31 or more rows; Error(usage) if the matrix is not square.
Adjacency adjacency_of(const CsrView& matrix);

}  // namespace shardmat
