// Which nodes are coupled strongly: norms of blocks, hinges, and the graph that aggregates are made of.
#include <cmath>

#include "kernels/blocks/dense_blocks.h"
#include "kernels/blocks/setup.h"
#include "kernels/blocks/small_blocks.h"

namespace shardmat::blocks {
namespace {

/// A team a row.
template <int kTeam>
__global__ void norms_of_blocks(std::int64_t count, int entries, const std::int64_t* start, const double* value,
                                const std::int64_t* diagonal, double* square, double* of_diagonal) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kTeam;
  if (i >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % kTeam;
  for (std::int64_t k = start[i] + lane; k < start[i + 1]; k += kTeam) {
    double sum = 0;
    for (int e = 0; e < entries; ++e) sum += value[k * entries + e] * value[k * entries + e];
    square[k] = sum;
    if (k == diagonal[i]) of_diagonal[i] = sqrt(sum);
  }
  if (lane == 0 && diagonal[i] < 0) of_diagonal[i] = 0;
}

template <int S>
__global__ void look_for_hinges(std::int64_t count, const std::int64_t* start, const std::int32_t* column,
                                const double* value, const std::int64_t* diagonal, const double* inverse, char* hinge) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  if (i >= count) return;
  constexpr std::int64_t kEntries = S * S;
  for (std::int64_t k = start[i] + threadIdx.x % kLanes; k < start[i + 1]; k += kLanes) {
    const std::int64_t j = column[k];
    bool is = false;
    if (j != i && j < count)
      is = diagonal[i] < 0 || diagonal[j] < 0 ||
           is_hinge<S>(kFree, value + k * kEntries, value + diagonal[i] * kEntries, inverse + i * kEntries,
                       value + diagonal[j] * kEntries, inverse + j * kEntries);
    hinge[k] = is ? 1 : 0;
  }
}

struct Strength {
  std::int64_t count;  ///< of nodes; ghosts are behind them
  const std::int64_t* start;
  const std::int32_t* column;
  const double *square, *diagonal;
  const char* left_out;  ///< null: none
  double theta;

  __device__ bool is_strong(std::int64_t i, std::int64_t k) const {
    const std::int64_t j = column[k];
    if (j == i || j >= count || (left_out != nullptr && left_out[k] != 0)) return false;
    return square[k] > 0 && square[k] >= theta * theta * diagonal[i] * diagonal[j];
  }
};

/// A team a row: counts, or writes if `node` is not null.
template <int kTeam>
__global__ void walk_couplings(Strength of, std::int64_t count, std::int64_t* start, std::int32_t* node, char* alone) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kTeam;
  if (i >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % kTeam, first_lane = static_cast<int>(threadIdx.x) % kLanes - lane;
  const unsigned mask = team_mask<kTeam>();
  const std::int64_t end = of.start[i + 1];
  std::int64_t found = 0;
  bool coupled = false;
  for (std::int64_t first = of.start[i]; first < end; first += kTeam) {
    const std::int64_t k = first + lane;
    const bool strong = k < end && of.is_strong(i, k);
    coupled = coupled || (k < end && of.column[k] != i && of.square[k] > 0);
    const unsigned votes = (__ballot_sync(mask, strong) & mask) >> first_lane;
    if (node != nullptr && strong) node[start[i] + found + __popc(votes & ((1u << lane) - 1))] = of.column[k];
    found += __popc(votes);
  }
  const bool is_coupled = __any_sync(mask, coupled);
  if (lane != 0 || node != nullptr) return;
  start[i] = found;
  alone[i] = is_coupled ? 0 : 1;
}

}  // namespace

Couplings coupling_norms(const BlockRows& a, const Buffer& diagonal, Stream& stream) {
  Couplings out{array<double>(a.blocks, stream), array<double>(a.count, stream)};
  with_team(a.blocks, a.count, [&]<int kTeam>(std::integral_constant<int, kTeam>) {
    cuda::launch(norms_of_blocks<kTeam>, a.count * kTeam, kThreads, stream, a.count, static_cast<int>(a.block_entries()),
                 a.start.as<std::int64_t>(), a.value.as<double>(), diagonal.as<std::int64_t>(), out.square.as<double>(),
                 out.diagonal.as<double>());
  });
  return out;
}

Buffer find_hinges(const BlockRows& a, const Buffer& diagonal, const Buffer& inverse, Stream& stream) {
  Buffer hinges = array<char>(a.blocks, stream);
  with_unknowns(a.row_size, [&]<int S>(std::integral_constant<int, S>) {
    cuda::launch(look_for_hinges<S>, a.count * kLanes, 128, stream, a.count, a.start.as<std::int64_t>(),
                 a.column.as<std::int32_t>(), a.value.as<double>(), diagonal.as<std::int64_t>(), inverse.as<double>(),
                 hinges.as<char>());
  });
  return hinges;
}

StrongGraph strong_couplings(const BlockRows& a, const Couplings& couplings, double theta, const Buffer* hinges,
                             Stream& stream) {
  StrongGraph graph;
  graph.count = a.count;
  graph.start = array<std::int64_t>(a.count + 1, stream);
  graph.alone = array<char>(a.count, stream);
  const Strength of{a.count,
                    a.start.as<std::int64_t>(),
                    a.column.as<std::int32_t>(),
                    couplings.square.as<double>(),
                    couplings.diagonal.as<double>(),
                    hinges ? hinges->as<char>() : nullptr,
                    theta};
  // A lane looks at some entries: more warps would wait longer for the rows than for these.
  constexpr int kEntriesOfLane = 4;
  const auto walk = [&](std::int32_t* node) {
    with_team(a.blocks / kEntriesOfLane, a.count, [&]<int kTeam>(std::integral_constant<int, kTeam>) {
      cuda::launch(walk_couplings<kTeam>, a.count * kTeam, kThreads, stream, of, a.count, graph.start.as<std::int64_t>(),
                   node, graph.alone.as<char>());
    });
  };
  walk(nullptr);
  graph.edges = sum_before(graph.start.as<std::int64_t>(), a.count, stream);
  graph.node = array<std::int32_t>(graph.edges, stream);
  if (graph.edges > 0) walk(graph.node.as<std::int32_t>());
  return graph;
}

}  // namespace shardmat::blocks
