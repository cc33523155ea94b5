// From rows of single entries to rows of blocks; blocks on the diagonal; the transpose.
#include <algorithm>
#include <cmath>

#include "kernels/blocks/dense_blocks.h"
#include "kernels/blocks/row_patterns.h"
#include "kernels/blocks/setup.h"
#include "kernels/blocks/small_blocks.h"

namespace shardmat::blocks {
namespace {

struct NodesOfEntries {
  EntryRows all;

  __device__ int source(std::int64_t k) const {
    const int column = all.column[k];
    return all.source_of == nullptr ? column : all.source_of[column];
  }
  template <class Insert>
  __device__ void each(std::int64_t node, int lane, int lanes, const Insert& insert) const {
    if (lane == 0) insert(static_cast<int>(node));
    for (int r = 0; r < all.size; ++r) {
      const std::int64_t i = node * all.size + r, end = all.row_ptr[i + 1];
      for (std::int64_t k = all.row_ptr[i] + lane; k < end; k += lanes) insert(source(k) / all.size);
    }
  }
};

/// Entries of each node that are not whole blocks, in order; at least 1 where a node has no entries. A team a node.
template <int kTeam>
__global__ void count_listed(NodesOfEntries from, std::int64_t nodes, const std::int64_t* start, const std::int32_t* column,
                             std::int64_t* listed) {
  const std::int64_t node = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kTeam;
  if (node >= nodes) return;
  const int lane = static_cast<int>(threadIdx.x) % kTeam, s = from.all.size;
  const std::int64_t* const row = from.all.row_ptr + node * s;
  const std::int64_t first = start[node], begin = row[0], length = (start[node + 1] - first) * s;
  bool whole = true;
  for (int r = 0; r < s; ++r) whole = whole && row[r + 1] == begin + (r + 1) * length;
  for (int r = 0; r < s && whole; ++r)
    for (int k = lane; k < length && whole; k += kTeam)
      whole = from.source(begin + r * length + k) == column[first + k / s] * s + k % s;
  whole = __all_sync(team_mask<kTeam>(), whole);
  if (lane == 0) listed[node] = whole ? 0 : max(row[s] - begin, std::int64_t{1});
}

template <int kTeam>
__global__ void list_places(NodesOfEntries from, std::int64_t nodes, const std::int64_t* start, const std::int32_t* column,
                            const std::int64_t* offset, std::uint32_t* places) {
  const std::int64_t node = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kTeam;
  if (node >= nodes || offset[node] == offset[node + 1]) return;
  const int lane = static_cast<int>(threadIdx.x) % kTeam, s = from.all.size;
  const std::int64_t* const row = from.all.row_ptr + node * s;
  const std::int64_t first = start[node], length = start[node + 1] - first;
  std::uint32_t* const to = places + offset[node];
  for (int r = 0; r < s; ++r)
    for (std::int64_t k = row[r] + lane; k < row[r + 1]; k += kTeam) {
      const int source = from.source(k);
      const auto block = static_cast<std::uint32_t>(place_of(column + first, length, source / s));
      to[k - row[0]] = (block * s + r) * s + source % s;
    }
}

/// A team a node.
template <int kTeam>
__global__ void put_values(std::int64_t nodes, int s, const std::int64_t* start, const std::int64_t* row_ptr,
                           const std::int64_t* offset, const std::uint32_t* places, const double* from, double* value) {
  const std::int64_t node = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kTeam;
  if (node >= nodes) return;
  const int lane = static_cast<int>(threadIdx.x) % kTeam;
  const std::int64_t begin = row_ptr[node * s];
  const int length = static_cast<int>(start[node + 1] - start[node]) * s;
  double* const to = value + start[node] * (s * s);
  from += begin;
  if (offset[node] == offset[node + 1]) {
    for (int r = 0; r < s; ++r)
      for (int k = lane; k < length; k += kTeam) to[k / s * (s * s) + r * s + k % s] = from[r * length + k];
    return;
  }
  for (int e = lane; e < length * s; e += kTeam) to[e] = 0;
  __syncwarp(team_mask<kTeam>());
  const std::int64_t entries = row_ptr[(node + 1) * s] - begin;
  for (std::int64_t e = lane; e < entries; e += kTeam)
    atomicAdd(to + places[offset[node] + e], from[e]);  // a column may come twice
}

__global__ void find_diagonal(std::int64_t count, const std::int64_t* start, const std::int32_t* column,
                              std::int64_t* diagonal) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::int64_t begin = start[i], length = start[i + 1] - begin,
                     place = place_of(column + begin, length, static_cast<std::int32_t>(i));
  diagonal[i] = place < length && column[begin + place] == i ? begin + place : -1;
}

template <int S>
__global__ void invert_diagonal(std::int64_t count, const std::int64_t* diagonal, const double* value, double* inverse) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  double block[S * S] = {}, result[S * S];
  if (diagonal[i] >= 0)
    for (int e = 0; e < S * S; ++e) block[e] = value[diagonal[i] * (S * S) + e];
  invert_symmetric<S>(block, result);
  for (int e = 0; e < S * S; ++e) inverse[i * (S * S) + e] = result[e];
}

template <int kTeam>
__global__ void row_of_blocks(std::int64_t count, const std::int64_t* start, std::int32_t* row) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kTeam;
  if (i >= count) return;
  for (std::int64_t k = start[i] + threadIdx.x % kTeam; k < start[i + 1]; k += kTeam) row[k] = static_cast<std::int32_t>(i);
}

__global__ void starts_of_sorted(std::int64_t blocks, std::int64_t rows, const std::int32_t* sorted, std::int64_t* start) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i <= rows) start[i] = place_of(sorted, blocks, static_cast<std::int32_t>(i));
}

__global__ void rows_by_block(std::int64_t blocks, const std::int32_t* row, const std::int32_t* block_of,
                              std::int32_t* column) {
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k < blocks) column[k] = row[block_of[k]];
}

__global__ void transpose_blocks(std::int64_t values, const double* from, const std::int32_t* block_of, int row_size,
                                 int col_size, double* to) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= values) return;
  const int entries = row_size * col_size;
  const std::int64_t k = at / entries;
  const int e = static_cast<int>(at - k * entries), r = e / row_size, c = e - r * row_size;  // of the transpose
  to[at] = from[std::int64_t{block_of[k]} * entries + c * col_size + r];
}

/// Random bits (S. Vigna's splitmix64).
__device__ std::uint64_t bits_of(std::uint64_t number) {
  std::uint64_t z = (number + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// A team a row of blocks.
template <int kTeam, class T>
__global__ void take_entries(std::int64_t count, int row_size, int col_size, const std::int64_t* start,
                             const std::int32_t* column, const double* value, std::int64_t* row_ptr, std::int32_t* to_column,
                             T* to) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kTeam;
  if (i >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % kTeam, entries = row_size * col_size;
  const std::int64_t begin = start[i], length = (start[i + 1] - begin) * col_size;
  for (int r = lane; r < row_size; r += kTeam) row_ptr[i * row_size + r] = begin * entries + r * length;
  if (lane == 0 && i + 1 == count) row_ptr[count * row_size] = start[count] * entries;
  for (std::int64_t at = lane; at < length * row_size; at += kTeam) {
    const std::int64_t r = at / length, e = at - r * length, k = e / col_size, c = e - k * col_size;
    to_column[begin * entries + at] = static_cast<std::int32_t>(column[begin + k] * col_size + c);
    to[begin * entries + at] = static_cast<T>(value[((begin + k) * row_size + r) * col_size + c]);
  }
}

template <class T>
__global__ void round_values(std::int64_t count, const double* from, T* to) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) to[i] = static_cast<T>(from[i]);
}

template <class T>
__global__ void make_fractions(std::int64_t first, std::int64_t count, T* to) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::uint64_t bits = bits_of(static_cast<std::uint64_t>(first + i));
  const double fraction = 0.5 + static_cast<double>(bits >> 12) * 0x1p-53;
  to[i] = static_cast<T>((bits & 1) != 0 ? fraction : -fraction);
}

/// Signs of two random vectors for eight pairs.
__device__ unsigned signs_of(std::uint64_t unknown) { return static_cast<unsigned>(bits_of(unknown) >> 40); }

constexpr int kPairs = 8, kSumBlocks = 1024;

/// x·A·y − y·A·x of each pair, then the square of the norm: a part for each thread block. A team a row, a lane a block.
/// `number`: of the nodes of the columns among those of all ranks; null: the same. S: unknowns of a node, or 0: `size`.
template <int S, int kTeam>
__global__ void __launch_bounds__(kThreads)
    add_differences(std::int64_t count, int size, const std::int64_t* start, const std::int32_t* column, const double* value,
                    const std::int64_t* number, double* parts) {
  constexpr int kMost = S > 0 ? S : kMostUnknowns;
  if (S > 0) size = S;
  double sums[kPairs + 1] = {};
  const int lane = static_cast<int>(threadIdx.x) % kTeam;
  const std::int64_t teams = static_cast<std::int64_t>(gridDim.x) * (kThreads / kTeam);
  const auto name = [number](std::int64_t node) {
    return static_cast<std::uint64_t>(number == nullptr ? node : number[node]);
  };
  for (std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kTeam; i < count; i += teams) {
    unsigned row[kMost];
    for (int r = 0; r < size; ++r) row[r] = signs_of(name(i) * size + r);
    for (std::int64_t k = start[i] + lane; k < start[i + 1]; k += kTeam) {
      const std::uint64_t first = name(column[k]) * size;
      const double* v = value + k * (size * size);
      unsigned col[kMost];
      for (int c = 0; c < size; ++c) col[c] = signs_of(first + c);
      for (int r = 0; r < size; ++r)
        for (int c = 0; c < size; ++c, ++v) {
          // A 1: the product of the signs is negative.
          const unsigned xy = row[r] ^ (col[c] >> kPairs), yx = (row[r] >> kPairs) ^ col[c], differ = xy ^ yx;
          for (int p = 0; p < kPairs; ++p) sums[p] += (differ >> p & 1) == 0 ? 0 : (xy >> p & 1) != 0 ? -2 * *v : 2 * *v;
          sums[kPairs] += *v * *v;
        }
    }
  }
  add_over_block<kPairs + 1, kThreads>(sums, parts + std::int64_t{blockIdx.x} * (kPairs + 1));
}

/// One warp an aggregate: the terms that diagonal entries of its coarse node are sums of.
__global__ void find_scales(std::int64_t count, const std::int64_t* start, const std::int32_t* member,
                            const std::int64_t* t_start, const double* t, int s, int m, const std::int64_t* diagonal,
                            const double* a, double* scale) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  if (i >= count) return;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  for (int c = lane; c < m; c += kLanes) {
    double sum = 0;
    for (std::int64_t at = start[i]; at < start[i + 1]; ++at) {
      const std::int64_t node = member[at], k = t_start[node];
      if (diagonal[node] < 0) continue;
      for (int r = 0; r < s; ++r) {
        const double of_t = t[(k * s + r) * m + c];
        sum += of_t * of_t * fabs(a[(diagonal[node] * s + r) * s + r]);
      }
    }
    scale[i * m + c] = sum;
  }
}

__global__ void mend(std::int64_t count, const std::int64_t* start, const std::int32_t* column, const double* scale, int m,
                     double* value) {
  constexpr double kNoise = 1e-13;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::int64_t begin = start[i], length = start[i + 1] - begin,
                     place = place_of(column + begin, length, static_cast<std::int32_t>(i));
  if (place >= length || column[begin + place] != i) return;
  double* const d = value + (begin + place) * m * m;
  double trace = 0;
  for (int r = 0; r < m; ++r) {
    if (fabs(d[r * m + r]) > kNoise * scale[i * m + r]) {
      trace += d[r * m + r];
      continue;
    }
    for (int c = 0; c < m; ++c) d[r * m + c] = d[c * m + r] = 0;
  }
  for (int r = 0; r < m; ++r)
    if (d[r * m + r] == 0) d[r * m + r] = trace > 0 ? trace / m : 1;
}

/// Sets `unlike` where columns do not ascend, the diagonal is missing, or a row is too wide. A team a row.
template <int kTeam>
__global__ void check_rows(std::int64_t rows, const std::int64_t* row_ptr, const std::int32_t* column, unsigned* unlike) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kTeam;
  if (i >= rows) return;
  const std::int64_t end = row_ptr[i + 1];
  bool ascends = true, has_diagonal = false;
  for (std::int64_t k = row_ptr[i] + threadIdx.x % kTeam; k < end; k += kTeam) {
    has_diagonal = has_diagonal || column[k] == i;
    ascends = ascends && (k + 1 == end || column[k] < column[k + 1]);
  }
  if (!__any_sync(team_mask<kTeam>(), has_diagonal) || !ascends || end - row_ptr[i] > patterns::kWideMost) *unlike = 1;
}

/// The entries are rows of blocks as they lie.
bool are_blocks(const EntryRows& entries, Stream& stream) {
  if (entries.size != 1 || entries.source_of != nullptr) return false;
  const Buffer unlike = array<unsigned>(1, stream);
  fill_bytes(unlike.data(), 0, unlike.bytes(), stream);
  with_team(entries.nnz, entries.rows, [&]<int kTeam>(std::integral_constant<int, kTeam>) {
    cuda::launch(check_rows<kTeam>, entries.rows * kTeam, kThreads, stream, entries.rows, entries.row_ptr, entries.column,
                 unlike.as<unsigned>());
  });
  unsigned found = 0;
  copy_to_host(&found, unlike.data(), sizeof found, stream);
  return found == 0;
}

template <class T>
Buffer copy_of(const T* from, std::int64_t count, Stream& stream) {
  Buffer copy = array<T>(count, stream);
  if (count > 0) copy_on_device(copy.data(), from, copy.bytes(), stream);
  return copy;
}

}  // namespace

BlockRows take_rows(const EntryRows& entries, Stream& stream) {
  BlockRows out;
  out.row_size = out.col_size = entries.size;
  out.count = out.cols = entries.rows / entries.size;
  if (are_blocks(entries, stream)) {
    require_memory(stream.device(), 8 * (out.count + 1) + 4 * entries.nnz, "the rows of multigrid's finest level");
    out.blocks = entries.nnz;
    out.start = copy_of(entries.row_ptr, out.count + 1, stream), out.column = copy_of(entries.column, out.blocks, stream);
  } else {
    const std::int64_t nnz_a_row = entries.rows == 0 ? 0 : entries.nnz / entries.rows;
    form_pattern(NodesOfEntries{entries}, out, nnz_a_row, stream);
  }
  return out;
}

EntryPlaces find_places(const EntryRows& entries, const BlockRows& a, Stream& stream) {
  require_memory(stream.device(), 8 * (entries.rows + 1) + 8 * (a.count + 1), "where the values of the finest level go");
  EntryPlaces out{copy_of(entries.row_ptr, entries.rows + 1, stream), array<std::int64_t>(a.count + 1, stream), {}};
  auto* const offset = out.offset.as<std::int64_t>();
  with_team(entries.nnz, entries.rows, [&]<int kTeam>(std::integral_constant<int, kTeam>) {
    cuda::launch(count_listed<kTeam>, a.count * kTeam, kThreads, stream, NodesOfEntries{entries}, a.count,
                 a.start.as<std::int64_t>(), a.column.as<std::int32_t>(), offset);
    const std::int64_t listed = sum_before(offset, a.count, stream);
    require_memory(stream.device(), 4 * listed, "where the values of the finest level go");
    out.place = array<std::uint32_t>(listed, stream);
    if (listed == 0) return;
    cuda::launch(list_places<kTeam>, a.count * kTeam, kThreads, stream, NodesOfEntries{entries}, a.count,
                 a.start.as<std::int64_t>(), a.column.as<std::int32_t>(), offset, out.place.as<std::uint32_t>());
  });
  stream.synchronize();
  return out;
}

void set_values(const EntryPlaces& places, const Buffer& values, BlockRows& a, Stream& stream) {
  const std::int64_t count = a.blocks * a.block_entries();
  if (a.value.bytes() == 0) {
    require_memory(stream.device(), 8 * count, "the rows of multigrid's finest level");
    a.value = array<double>(count, stream);
  }
  with_team(a.blocks * a.col_size, a.count, [&]<int kTeam>(std::integral_constant<int, kTeam>) {
    cuda::launch(put_values<kTeam>, a.count * kTeam, kThreads, stream, a.count, a.row_size, a.start.as<std::int64_t>(),
                 places.row_ptr.as<std::int64_t>(), places.offset.as<std::int64_t>(), places.place.as<std::uint32_t>(),
                 values.as<double>(), a.value.as<double>());
  });
  stream.synchronize();
}

SingleEntries single_entries(const BlockRows& a, ValueType type, Stream& stream) {
  const std::int64_t values = a.blocks * a.block_entries(), rows = a.count * a.row_size;
  require_memory(stream.device(), 8 * (rows + 1) + values * static_cast<std::int64_t>(4 + size_of(type)),
                 "single entries of a level of multigrid");
  SingleEntries out{array<std::int64_t>(rows + 1, stream), array<std::int32_t>(values, stream),
                    Buffer(stream.device(), static_cast<std::size_t>(values) * size_of(type))};
  if (a.count == 0) fill_bytes(out.row_ptr.data(), 0, out.row_ptr.bytes(), stream);
  const bool are_single = a.block_entries() == 1 && a.blocks > 0;
  if (are_single) {
    copy_on_device(out.row_ptr.data(), a.start.data(), a.start.bytes(), stream);
    copy_on_device(out.column.data(), a.column.data(), a.column.bytes(), stream);
  }
  dispatch(type, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    if (are_single)
      return cuda::launch(round_values<T>, values, kThreads, stream, values, a.value.as<double>(), out.value.as<T>());
    with_team(a.blocks * a.block_entries(), a.count, [&]<int kTeam>(std::integral_constant<int, kTeam>) {
      cuda::launch(take_entries<kTeam, T>, a.count * kTeam, kThreads, stream, a.count, a.row_size, a.col_size,
                   a.start.as<std::int64_t>(), a.column.as<std::int32_t>(), a.value.as<double>(),
                   out.row_ptr.as<std::int64_t>(), out.column.as<std::int32_t>(), out.value.as<T>());
    });
  });
  return out;
}

void fill_fractions(ValueType type, std::int64_t first, std::int64_t count, void* to, Stream& stream) {
  dispatch(type, [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    cuda::launch(make_fractions<T>, count, kThreads, stream, first, count, static_cast<T*>(to));
  });
}

AsymmetrySums asymmetry_sums(const BlockRows& a, const Buffer* numbers, Stream& stream) {
  constexpr int kSums = kPairs + 1;
  static_assert(std::tuple_size_v<AsymmetrySums> == kSums);
  const Buffer parts = array<double>(kSumBlocks * kSums, stream);
  with_team(a.blocks, a.count, [&]<int kTeam>(std::integral_constant<int, kTeam>) {
    const auto launch = [&](auto kernel) {
      cuda::launch_blocks(kernel, kSumBlocks, kThreads, 0, stream, a.count, a.row_size, a.start.as<std::int64_t>(),
                          a.column.as<std::int32_t>(), a.value.as<double>(),
                          numbers == nullptr ? nullptr : numbers->as<std::int64_t>(), parts.as<double>());
    };
    if (a.row_size == 1) launch(add_differences<1, kTeam>);
    else if (a.row_size == 2) launch(add_differences<2, kTeam>);
    else if (a.row_size == 3) launch(add_differences<3, kTeam>);
    else launch(add_differences<0, kTeam>);
  });
  AsymmetrySums sums{};
  sum_parts(parts, kSumBlocks, kSums, sums.data(), stream);
  return sums;
}

double asymmetry(const AsymmetrySums& sums) {
  double squares = 0;
  for (int p = 0; p < kPairs; ++p) squares += sums[p] * sums[p] / kPairs;
  return sums[kPairs] > 0 ? std::sqrt(squares / sums[kPairs]) : 0;
}

Buffer diagonal_places(const BlockRows& a, Stream& stream) {
  Buffer diagonal = array<std::int64_t>(a.count, stream);
  cuda::launch(find_diagonal, a.count, kThreads, stream, a.count, a.start.as<std::int64_t>(), a.column.as<std::int32_t>(),
               diagonal.as<std::int64_t>());
  return diagonal;
}

Buffer inverse_diagonal(const BlockRows& a, const Buffer& diagonal, Stream& stream) {
  Buffer inverse = array<double>(a.count * a.block_entries(), stream);
  with_unknowns(a.row_size, [&]<int S>(std::integral_constant<int, S>) {
    cuda::launch(invert_diagonal<S>, a.count, 128, stream, a.count, diagonal.as<std::int64_t>(), a.value.as<double>(),
                 inverse.as<double>());
  });
  return inverse;
}

BlockRows transposed(const BlockRows& a, Buffer& block_of, Stream& stream) {
  BlockRows out;
  out.row_size = a.col_size, out.col_size = a.row_size;
  out.count = a.cols, out.cols = a.count, out.blocks = a.blocks;
  out.start = array<std::int64_t>(out.count + 1, stream);
  out.column = array<std::int32_t>(out.blocks, stream);
  out.value = array<double>(out.blocks * out.block_entries(), stream);
  block_of = array<std::int32_t>(out.blocks, stream);
  const Buffer row = array<std::int32_t>(a.blocks, stream), sorted = array<std::int32_t>(a.blocks, stream);
  with_team(a.blocks, a.count, [&]<int kTeam>(std::integral_constant<int, kTeam>) {
    cuda::launch(row_of_blocks<kTeam>, a.count * kTeam, kThreads, stream, a.count, a.start.as<std::int64_t>(),
                 row.as<std::int32_t>());
  });
  sort_by_key(a.column.as<std::int32_t>(), a.blocks, a.cols, sorted.as<std::int32_t>(), block_of.as<std::int32_t>(), stream);
  cuda::launch(starts_of_sorted, out.count + 1, kThreads, stream, a.blocks, out.count, sorted.as<std::int32_t>(),
               out.start.as<std::int64_t>());
  cuda::launch(rows_by_block, a.blocks, kThreads, stream, a.blocks, row.as<std::int32_t>(), block_of.as<std::int32_t>(),
               out.column.as<std::int32_t>());
  transpose_values(a, block_of, out, stream);
  stream.synchronize();
  return out;
}

void transpose_values(const BlockRows& a, const Buffer& block_of, BlockRows& out, Stream& stream) {
  const std::int64_t values = a.blocks * a.block_entries();
  cuda::launch(transpose_blocks, values, kThreads, stream, values, a.value.as<double>(), block_of.as<std::int32_t>(),
               a.row_size, a.col_size, out.value.as<double>());
}

Buffer diagonal_scales(const BlockRows& t, const Aggregates& aggregates, const BlockRows& a, const Buffer& diagonal,
                       Stream& stream) {
  const int m = t.col_size;
  Buffer scale = array<double>(aggregates.count * m, stream);
  cuda::launch(find_scales, aggregates.count * kLanes, kThreads, stream, aggregates.count,
               aggregates.start.as<std::int64_t>(), aggregates.member.as<std::int32_t>(), t.start.as<std::int64_t>(),
               t.value.as<double>(), t.row_size, m, diagonal.as<std::int64_t>(), a.value.as<double>(), scale.as<double>());
  return scale;
}

void mend_diagonal(BlockRows& coarse, const Buffer& scale, Stream& stream) {
  cuda::launch(mend, coarse.count, kThreads, stream, coarse.count, coarse.start.as<std::int64_t>(),
               coarse.column.as<std::int32_t>(), scale.as<double>(), coarse.row_size, coarse.value.as<double>());
  stream.synchronize();
}

}  // namespace shardmat::blocks
