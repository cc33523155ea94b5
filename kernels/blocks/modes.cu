// Vectors that A maps to almost 0: rigid-body modes, how well A keeps them, and what of them aggregates have.
#include <algorithm>
#include <cmath>

#include "kernels/blocks/setup.h"
#include "kernels/blocks/small_blocks.h"

namespace shardmat::blocks {
namespace {

constexpr unsigned kAll = 0xffffffffu;

__global__ void make_constants(std::int64_t nodes, int size, double* mode) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < nodes * size * size) mode[at] = at % (size * size) % (size + 1) == 0 ? 1 : 0;
}

struct Centre {
  double at[3], reach;
};

/// Rows as in multigrid's near_null_space.cpp.
__global__ void make_rigid_modes(std::int64_t nodes, int size, int dimensions, const double* coordinates, Centre centre,
                                 double* mode) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= nodes) return;
  double p[3] = {};
  for (int c = 0; c < dimensions; ++c) p[c] = (coordinates[i * dimensions + c] - centre.at[c]) / centre.reach;
  const double turn = 1 / centre.reach;
  if (dimensions == 2) {
    const double rows[9] = {1, 0, -p[1], 0, 1, p[0], 0, 0, turn};
    for (int e = 0; e < size * 3; ++e) mode[i * size * 3 + e] = rows[e];
  } else {
    const double rows[36] = {1, 0, 0, -p[1], 0,    p[2], 0, 1, 0, p[0], -p[2], 0,    0, 0, 1, 0,    p[1], -p[0],
                             0, 0, 0, 0,     turn, 0,    0, 0, 0, 0,    0,     turn, 0, 0, 0, turn, 0,    0};
    for (int e = 0; e < size * 6; ++e) mode[i * size * 6 + e] = rows[e];
  }
}

struct Rows {
  std::int64_t count;
  int size;
  const std::int64_t* start;
  const std::int32_t* column;
  const double* value;
};
Rows rows_of(const BlockRows& a) {
  return {a.count, a.row_size, a.start.as<std::int64_t>(), a.column.as<std::int32_t>(), a.value.as<double>()};
}

__global__ void clear_modes(Rows a, int modes, double* mode) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int s = a.size;
  if (row >= a.count * s) return;
  const std::int64_t i = row / s;
  const int r = static_cast<int>(row - i * s);
  for (std::int64_t k = a.start[i]; k < a.start[i + 1]; ++k)
    for (int c = 0; c < s; ++c)
      if (a.value[(k * s + r) * s + c] != 0 && (a.column[k] != i || c != r)) return;
  for (int v = 0; v < modes; ++v) mode[row * modes + v] = 0;
}

struct SmallRows {
  unsigned long long small, coupled;
};

/// A warp a row.
__global__ void look_at_rows(Rows a, const double* mode, int modes, std::int64_t step, double limit, SmallRows* counts) {
  const std::int64_t warp = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  const int s = a.size, lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t i = warp / s * step;
  const int r = static_cast<int>(warp % s);
  if (i >= a.count) return;
  bool small = true, coupled = false;
  for (int v = 0; v < modes; ++v) {
    double sum = 0, absolute = 0;
    for (std::int64_t k = a.start[i] + lane; k < a.start[i + 1]; k += kLanes)
      for (int c = 0; c < s; ++c) {
        const double term = a.value[(k * s + r) * s + c] * mode[(std::int64_t{a.column[k]} * s + c) * modes + v];
        sum += term, absolute += fabs(term);
      }
    for (int other = kLanes / 2; other > 0; other /= 2) {
      sum += __shfl_xor_sync(kAll, sum, other);
      absolute += __shfl_xor_sync(kAll, absolute, other);
    }
    small = small && fabs(sum) <= limit * absolute;
    coupled = coupled || absolute > 0;
  }
  if (lane != 0 || !coupled) return;
  atomicAdd(&counts->coupled, 1ull);
  if (small) atomicAdd(&counts->small, 1ull);
}

__global__ void begin_rows(std::int64_t count, const std::int32_t* of_node, std::int64_t* start) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) start[i] = of_node[i] >= 0 ? 1 : 0;
}

__global__ void take_modes(std::int64_t count, int entries, const std::int32_t* of_node, const std::int64_t* start,
                           const double* mode, std::int32_t* column, double* value) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x, i = at / entries;
  if (i >= count || of_node[i] < 0) return;
  const int e = static_cast<int>(at - i * entries);
  value[start[i] * entries + e] = mode[at];
  if (e == 0) column[start[i]] = of_node[i];
}

/// Modified Gram and Schmidt, twice, on the rows of an aggregate; a warp each.
__global__ void make_orthonormal(std::int64_t count, const std::int64_t* first, const std::int32_t* member,
                                 const std::int64_t* start, int s, int m, double* value, double* factors) {
  constexpr double kSpanned = 1e-16;
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  if (i >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t begin = first[i], rows = (first[i + 1] - begin) * s;
  double* const factor = factors + i * m * m;
  const auto row_at = [&](std::int64_t t) { return value + (start[member[begin + t / s]] * s + t % s) * m; };
  const auto dot = [&](int c, int e) {
    double sum = 0;
    for (std::int64_t t = lane; t < rows; t += kLanes) {
      const double* const row = row_at(t);
      sum += row[c] * row[e];
    }
    for (int other = kLanes / 2; other > 0; other /= 2) sum += __shfl_xor_sync(kAll, sum, other);
    return sum;
  };
  for (int c = 0; c < m; ++c) {
    const double before = dot(c, c);
    for (int e = 0; e < m; ++e)
      if (e >= c && lane == 0) factor[e * m + c] = 0;
    for (int pass = 0; pass < 2; ++pass)
      for (int e = 0; e < c; ++e) {
        const double d = dot(c, e);
        if (lane == 0) factor[e * m + c] = pass == 0 ? d : factor[e * m + c] + d;
        for (std::int64_t t = lane; t < rows; t += kLanes) {
          double* const row = row_at(t);
          row[c] -= d * row[e];
        }
      }
    const double after = dot(c, c), norm = after > kSpanned * before ? sqrt(after) : 0;
    if (lane == 0) factor[c * m + c] = norm;
    for (std::int64_t t = lane; t < rows; t += kLanes) row_at(t)[c] *= norm > 0 ? 1 / norm : 0;
  }
}

/// A team a row of A·T.
template <int S, int kTeam>
__global__ void smooth_rows(std::int64_t count, int m, const std::int64_t* start, const std::int32_t* column,
                            const std::int64_t* t_start, const double* t, const std::int32_t* of_node, const double* inverse,
                            double omega, double* value) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kTeam;
  if (i >= count) return;
  const std::int64_t blocks = start[i + 1] - start[i];
  // A lane has a column of unknowns of the row.
  for (std::int64_t at = threadIdx.x % kTeam; at < blocks * m; at += kTeam) {
    const std::int64_t k = start[i] + at / m;
    const int c = static_cast<int>(at % m);
    double of_product[S];
    for (int r = 0; r < S; ++r) of_product[r] = value[(k * S + r) * m + c];
    const bool own = column[k] == of_node[i];
    for (int r = 0; r < S; ++r) {
      double sum = 0;
      for (int q = 0; q < S; ++q) sum += inverse[(i * S + r) * S + q] * of_product[q];
      value[(k * S + r) * m + c] = (own ? t[(t_start[i] * S + r) * m + c] : 0) - omega * sum;
    }
  }
}

__global__ void begin_bodies(std::int64_t count, int entries, const double* mode, std::int32_t* parent) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  bool moves = false;
  for (int e = 0; e < entries && !moves; ++e) moves = mode[i * entries + e] != 0;
  parent[i] = moves ? static_cast<std::int32_t>(i) : -1;
}

__device__ std::int32_t root_of(volatile std::int32_t* parent, std::int32_t i) {
  while (true) {
    const std::int32_t p = parent[i];
    if (p == i) return i;
    const std::int32_t q = parent[p];
    if (q != p) parent[i] = q;  // a shorter way; others may write another ancestor
    i = p;
  }
}

/// The larger root is hung below the smaller one, so that roots are the least nodes of their bodies.
template <int kTeam>
__global__ void join_bodies(Rows a, const double* square, std::int32_t* parent) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kTeam;
  if (i >= a.count || parent[i] < 0) return;
  for (std::int64_t k = a.start[i] + threadIdx.x % kTeam; k < a.start[i + 1]; k += kTeam) {
    const std::int32_t j = a.column[k];
    if (j >= i || square[k] == 0 || static_cast<volatile std::int32_t*>(parent)[j] < 0) continue;
    std::int32_t p = root_of(parent, static_cast<std::int32_t>(i)), q = root_of(parent, j);
    while (p != q) {
      const std::int32_t high = max(p, q), low = min(p, q), before = atomicCAS(parent + high, high, low);
      if (before == high) break;
      p = root_of(parent, before), q = low;
    }
  }
}

struct BodiesFound {
  unsigned long long bodies;
  std::int32_t listed[Bodies::kListed];
};

__global__ void name_bodies(std::int64_t count, std::int32_t* parent, std::int32_t* of_node, BodiesFound* found) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  of_node[i] = parent[i] < 0 ? -1 : root_of(parent, static_cast<std::int32_t>(i));
  if (of_node[i] != i) return;
  const unsigned long long before = atomicAdd(&found->bodies, 1ull);
  if (before < Bodies::kListed) found->listed[before] = static_cast<std::int32_t>(i);
}

constexpr int kBlocksOfSums = 512, kWarpsOfBlock = kThreads / kLanes, kMostPairs = kMostUnknowns * kMostUnknowns;
constexpr int kOfLane = (2 * kMostPairs + kLanes - 1) / kLanes;  ///< sums of a lane at most

/// A warp takes rows in turn. part: 2·m·m sums and the largest magnitude on the diagonal, of each thread block.
__global__ void __launch_bounds__(kThreads) add_body_sums(Rows a, const std::int64_t* diagonal, const double* mode, int m,
                                                          const std::int32_t* body, std::int32_t wanted, double* part) {
  extern __shared__ double shared[];
  const int s = a.size, lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes,
            entries = s * m, pairs = m * m;
  double* const force = shared + warp * entries;
  double* const of_warps = shared + kWarpsOfBlock * entries;  // 2·m·m + 1 a warp
  int share = 1;
  while (2 * share * entries <= kLanes) share *= 2;
  double sums[kOfLane] = {}, largest = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kWarpsOfBlock + warp; i < a.count;
       i += static_cast<std::int64_t>(gridDim.x) * kWarpsOfBlock) {
    if (body[i] != wanted) continue;
    __syncwarp();
    // Where a row has few forces, several lanes share one.
    for (int first = 0; first < entries; first += kLanes / share) {
      const int e = first + lane / share, r = e / m, v = e - r * m;
      double sum = 0;
      for (std::int64_t k = a.start[i] + lane % share; e < entries && k < a.start[i + 1]; k += share)
        for (int c = 0; c < s; ++c) sum += a.value[(k * s + r) * s + c] * mode[(std::int64_t{a.column[k]} * s + c) * m + v];
      for (int other = share / 2; other > 0; other /= 2) sum += __shfl_xor_sync(kAll, sum, other);
      if (e < entries && lane % share == 0) force[e] = sum;
    }
    __syncwarp();
    int n = 0;
    for (int at = lane; at < 2 * pairs; at += kLanes, ++n) {
      const int pair = at % pairs, p = pair / m, q = pair - p * m;
      for (int r = 0; r < s; ++r) {
        const double other = at < pairs ? force[r * m + q] : mode[(i * s + r) * m + q];
        sums[n] += mode[(i * s + r) * m + p] * other;
      }
    }
    if (diagonal[i] >= 0)
      for (int r = lane; r < s; r += kLanes) largest = fmax(largest, fabs(a.value[(diagonal[i] * s + r) * s + r]));
  }
  for (int other = kLanes / 2; other > 0; other /= 2) largest = fmax(largest, __shfl_xor_sync(kAll, largest, other));
  int n = 0;
  for (int at = lane; at < 2 * pairs; at += kLanes, ++n) of_warps[warp * (2 * pairs + 1) + at] = sums[n];
  if (lane == 0) of_warps[warp * (2 * pairs + 1) + 2 * pairs] = largest;
  __syncthreads();
  for (int at = static_cast<int>(threadIdx.x); at <= 2 * pairs; at += kThreads) {
    double all = 0;
    for (int w = 0; w < kWarpsOfBlock; ++w) {
      const double one = of_warps[w * (2 * pairs + 1) + at];
      all = at < 2 * pairs ? all + one : fmax(all, one);
    }
    part[std::int64_t{blockIdx.x} * (2 * pairs + 1) + at] = all;
  }
}

}  // namespace

Buffer constant_modes(std::int64_t nodes, int size, Stream& stream) {
  Buffer modes = array<double>(nodes * size * size, stream);
  cuda::launch(make_constants, nodes * size * size, kThreads, stream, nodes, size, modes.as<double>());
  return modes;
}

Buffer rigid_body_modes(const Buffer& coordinates, int dimensions, std::int64_t nodes, int size, const double* centre,
                        double reach, Stream& stream) {
  Buffer modes = array<double>(nodes * size * (dimensions == 2 ? 3 : 6), stream);
  cuda::launch(make_rigid_modes, nodes, kThreads, stream, nodes, size, dimensions, coordinates.as<double>(),
               Centre{{centre[0], centre[1], centre[2]}, reach}, modes.as<double>());
  return modes;
}

void clear_alone(const BlockRows& a, Buffer& modes, int count, Stream& stream) {
  cuda::launch(clear_modes, a.count * a.row_size, kThreads, stream, rows_of(a), count, modes.as<double>());
}

RowCounts count_small_rows(const BlockRows& a, const Buffer& modes, int count, std::int64_t step, double small,
                           Stream& stream) {
  const Buffer counts = array<SmallRows>(1, stream);
  fill_bytes(counts.data(), 0, counts.bytes(), stream);
  const std::int64_t rows = (a.count + step - 1) / step * a.row_size;
  cuda::launch(look_at_rows, rows * kLanes, kThreads, stream, rows_of(a), modes.as<double>(), count, step, small,
               counts.as<SmallRows>());
  SmallRows found{};
  copy_to_host(&found, counts.data(), sizeof found, stream);
  return {static_cast<std::int64_t>(found.small), static_cast<std::int64_t>(found.coupled)};
}

BlockRows tentative(const Aggregates& aggregates, const Buffer& modes, int s, int m, Buffer& coarse, Stream& stream) {
  BlockRows t;
  t.row_size = s, t.col_size = m;
  t.count = static_cast<std::int64_t>(aggregates.of_node.bytes() / sizeof(std::int32_t));
  t.cols = aggregates.count, t.blocks = aggregates.taken;
  const int entries = s * m;
  t.start = array<std::int64_t>(t.count + 1, stream);
  t.column = array<std::int32_t>(t.blocks, stream);
  t.value = array<double>(t.blocks * entries, stream);
  coarse = array<double>(t.cols * m * m, stream);
  cuda::launch(begin_rows, t.count, kThreads, stream, t.count, aggregates.of_node.as<std::int32_t>(),
               t.start.as<std::int64_t>());
  sum_before(t.start.as<std::int64_t>(), t.count, stream);
  cuda::launch(take_modes, t.count * entries, kThreads, stream, t.count, entries, aggregates.of_node.as<std::int32_t>(),
               t.start.as<std::int64_t>(), modes.as<double>(), t.column.as<std::int32_t>(), t.value.as<double>());
  cuda::launch(make_orthonormal, t.cols * kLanes, 128, stream, t.cols, aggregates.start.as<std::int64_t>(),
               aggregates.member.as<std::int32_t>(), t.start.as<std::int64_t>(), s, m, t.value.as<double>(),
               coarse.as<double>());
  return t;
}

void smooth(BlockRows& of_product, const BlockRows& t, const Buffer& column_of_node, const Buffer& inverse, double omega,
            Stream& stream) {
  with_unknowns(of_product.row_size, [&]<int S>(std::integral_constant<int, S>) {
    with_team(of_product.blocks * of_product.col_size, of_product.count, [&]<int kTeam>(std::integral_constant<int, kTeam>) {
      cuda::launch(smooth_rows<S, kTeam>, of_product.count * kTeam, kThreads, stream, of_product.count, of_product.col_size,
                   of_product.start.as<std::int64_t>(), of_product.column.as<std::int32_t>(), t.start.as<std::int64_t>(),
                   t.value.as<double>(), column_of_node.as<std::int32_t>(), inverse.as<double>(), omega,
                   of_product.value.as<double>());
    });
  });
}

Bodies find_bodies(const BlockRows& a, const Couplings& couplings, const Buffer& modes, int count, Stream& stream) {
  const Buffer parent = array<std::int32_t>(a.count, stream), found = array<BodiesFound>(1, stream);
  Bodies bodies;
  bodies.of_node = array<std::int32_t>(a.count, stream);
  fill_bytes(found.data(), 0, found.bytes(), stream);
  cuda::launch(begin_bodies, a.count, kThreads, stream, a.count, a.row_size * count, modes.as<double>(),
               parent.as<std::int32_t>());
  with_team(a.blocks, a.count, [&]<int kTeam>(std::integral_constant<int, kTeam>) {
    cuda::launch(join_bodies<kTeam>, a.count * kTeam, kThreads, stream, rows_of(a), couplings.square.as<double>(),
                 parent.as<std::int32_t>());
  });
  cuda::launch(name_bodies, a.count, kThreads, stream, a.count, parent.as<std::int32_t>(), bodies.of_node.as<std::int32_t>(),
               found.as<BodiesFound>());
  BodiesFound of_device{};
  copy_to_host(&of_device, found.data(), sizeof of_device, stream);
  bodies.count = static_cast<std::int64_t>(of_device.bodies);
  if (bodies.count <= Bodies::kListed) bodies.listed.assign(of_device.listed, of_device.listed + bodies.count);
  std::sort(bodies.listed.begin(), bodies.listed.end());
  return bodies;
}

void body_sums(const BlockRows& a, const Buffer& diagonal, const Buffer& modes, int count, const Bodies& bodies,
               std::int32_t body, double* sums, Stream& stream) {
  const int values = 2 * count * count + 1;
  const std::size_t shared = sizeof(double) * static_cast<std::size_t>(kWarpsOfBlock * (a.row_size * count + values));
  const Buffer parts = array<double>(std::int64_t{kBlocksOfSums} * values, stream);
  cuda::allow_shared_memory(add_body_sums, shared, stream.device());
  cuda::launch_blocks(add_body_sums, kBlocksOfSums, kThreads, shared, stream, rows_of(a), diagonal.as<std::int64_t>(),
                      modes.as<double>(), count, bodies.of_node.as<std::int32_t>(), body, parts.as<double>());
  std::vector<double> all(static_cast<std::size_t>(kBlocksOfSums) * static_cast<std::size_t>(values));
  copy_to_host(all.data(), parts.data(), all.size() * sizeof(double), stream);
  for (int n = 0; n < values; ++n) {
    sums[n] = 0;
    for (int part = 0; part < kBlocksOfSums; ++part) {
      const double one = all[static_cast<std::size_t>(part * values + n)];
      sums[n] = n + 1 < values ? sums[n] + one : std::max(sums[n], one);
    }
  }
}

}  // namespace shardmat::blocks
