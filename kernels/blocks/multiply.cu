// Products of rows of blocks, by rows: a team of lanes adds the terms of a row of A·B in shared memory.
#include <algorithm>

#include "kernels/blocks/row_patterns.h"
#include "kernels/blocks/setup.h"
#include "kernels/blocks/small_blocks.h"

namespace shardmat::blocks {
namespace {

/// Lanes of the teams beside a warp: for rows of single entries, for long rows, and where few long rows fit beside each
/// other.
constexpr int kFew = 4, kMany = 128, kMost = 512;
constexpr int kAtOnce = 128;  ///< blocks of a row of B whose places are looked up together

struct RowsOfProduct {
  const std::int64_t *a_start, *b_start;
  const std::int32_t *a_column, *b_column;

  template <class Insert>
  __device__ void each(std::int64_t row, int lane, int lanes, const Insert& insert) const {
    const std::int64_t end = a_start[row + 1];
    for (std::int64_t k = a_start[row] + lane; k < end; k += lanes) {
      const std::int64_t j = a_column[k], b_end = b_start[j + 1];
      for (std::int64_t l = b_start[j]; l < b_end; ++l) insert(b_column[l]);
    }
  }
};

struct Operands {
  std::int64_t count;
  const std::int64_t *a_start, *b_start, *start;
  const std::int32_t *a_column, *b_column, *column;
  const double *a, *b;
  double* value;
  int row_size, inner, col_size;
  int longest;    ///< row of the product
  bool in_place;  ///< terms are added where they stay
};

/// kR, kT, kM: row_size, inner and col_size, or 0. Terms are added in the order of the blocks of A's row.
template <int kR, int kT, int kM, int kTeam>
__global__ void multiply_rows(Operands p) {
  extern __shared__ double shared[];
  const int size = kR > 0 ? kR : p.row_size, inner = kT > 0 ? kT : p.inner, m = kM > 0 ? kM : p.col_size, entries = size * m;
  const int team = static_cast<int>(threadIdx.x) / kTeam, lane = static_cast<int>(threadIdx.x) % kTeam,
            teams = static_cast<int>(blockDim.x) / kTeam;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * teams + team;
  if (i >= p.count) return;  // the whole team
  const auto wait = [] {
    if constexpr (kTeam < kLanes) __syncwarp(((1u << kTeam) - 1) << (threadIdx.x % kLanes / kTeam * kTeam));
    else if constexpr (kTeam == kLanes) __syncwarp();
    else __syncthreads();
  };
  const std::int64_t begin = p.start[i];
  const int length = static_cast<int>(p.start[i + 1] - begin);
  const int sums_of_team = p.in_place ? 0 : p.longest * entries;
  double* const sum = p.in_place ? p.value + begin * entries : shared + static_cast<std::size_t>(team) * sums_of_team;
  int* const ints = reinterpret_cast<int*>(shared + static_cast<std::size_t>(teams) * sums_of_team);
  int* const place = ints + team * (kAtOnce + (p.in_place ? 0 : p.longest));
  const std::int32_t* column = p.column + begin;
  if (!p.in_place) {  // places are looked up in shared memory
    int* const copy = place + kAtOnce;
    for (int at = lane; at < length; at += kTeam) copy[at] = column[at];
    column = copy;
  }
  for (int at = lane; at < length * entries; at += kTeam) sum[at] = 0;
  const std::int64_t end = p.a_start[i + 1];
  std::int64_t next_first = 0, next_last = 0;  // of B's row of the next block: its loads are under way meanwhile
  const auto look_ahead = [&](std::int64_t k) {
    if (k >= end) return;
    const std::int64_t j = p.a_column[k];
    next_first = p.b_start[j], next_last = p.b_start[j + 1];
  };
  look_ahead(p.a_start[i]);
  if constexpr (kR * kT * kM == 1) wait();
  for (std::int64_t k = p.a_start[i]; k < end; ++k) {
    const std::int64_t first = next_first, last = next_last;
    look_ahead(k + 1);
    const double* const of_a = p.a + k * (size * inner);
    if constexpr (kR * kT * kM == 1) {  // a lane looks up what it adds
      for (std::int64_t l = first + lane; l < last; l += kTeam) {
        const double term = __dmul_rn(*of_a, p.b[l]);
        sum[place_of(column, length, p.b_column[l])] += term;
      }
      wait();
    } else {
      for (std::int64_t from = first; from < last; from += kAtOnce) {
        const int blocks = static_cast<int>(last - from < kAtOnce ? last - from : kAtOnce);
        wait();  // for those who still read places, and for sums
        for (int l = lane; l < blocks; l += kTeam)
          place[l] = static_cast<int>(place_of(column, length, p.b_column[from + l]));
        wait();
        for (int at = lane; at < blocks * entries; at += kTeam) {
          const int l = at / entries, e = at - l * entries, r = e / m, c = e - r * m;
          const double* const of_b = p.b + (from + l) * (inner * m) + c;
          double term = 0;
#pragma unroll
          for (int q = 0; q < inner; ++q) term += of_a[r * inner + q] * of_b[q * m];
          sum[place[l] * entries + e] += term;
        }
      }
    }
  }
  if (p.in_place) return;
  wait();
  double* const to = p.value + begin * entries;
  for (int at = lane; at < length * entries; at += kTeam) to[at] = sum[at];
}

template <int kR, int kT, int kM>
void run(Operands p, std::int64_t mean_terms, Stream& stream) {
  const std::size_t most = cuda::most_shared_memory(stream.device());
  const std::size_t sums =
      sizeof(double) * static_cast<std::size_t>(p.longest) * static_cast<std::size_t>(p.row_size * p.col_size);
  const std::size_t of_team = sums + (kAtOnce + static_cast<std::size_t>(p.longest)) * sizeof(int);
  // Several thread blocks should fit beside each other.
  constexpr std::size_t kComfortable = 48 << 10;
  const auto launch = [&](auto kernel, int lanes, int most_teams) {
    const std::size_t each = p.in_place ? kAtOnce * sizeof(int) : of_team;
    const int teams =
        static_cast<int>(std::clamp<std::size_t>(kComfortable / each, 1, static_cast<std::size_t>(most_teams)));
    const std::size_t bytes = each * static_cast<std::size_t>(teams);
    cuda::allow_shared_memory(kernel, bytes, stream.device());
    cuda::launch_blocks(kernel, (p.count + teams - 1) / teams, lanes * teams, bytes, stream, p);
  };
  if (kR == 1 && mean_terms <= 2 * kFew && of_team <= kComfortable / 16)
    return launch(multiply_rows<kR, kT, kM, kFew>, kFew, 64);
  if (mean_terms < 2 * kMany && of_team <= kComfortable) return launch(multiply_rows<kR, kT, kM, kLanes>, kLanes, 8);
  p.in_place = of_team > most;
  if (of_team <= kComfortable) return launch(multiply_rows<kR, kT, kM, kMany>, kMany, 1);
  launch(multiply_rows<kR, kT, kM, kMost>, kMost, 1);
}

}  // namespace

BlockRows product_pattern(const BlockRows& a, const BlockRows& b, std::int64_t most, int& longest, Stream& stream) {
  BlockRows out;
  out.row_size = a.row_size, out.col_size = b.col_size;
  out.count = a.count, out.cols = b.cols;
  const RowsOfProduct source{a.start.as<std::int64_t>(), b.start.as<std::int64_t>(), a.column.as<std::int32_t>(),
                             b.column.as<std::int32_t>()};
  const auto mean = [](const BlockRows& of) { return of.count == 0 ? 0 : (of.blocks + of.count - 1) / of.count; };
  longest = form_pattern(source, out, mean(a) * mean(b), stream, [&](std::int64_t blocks) { return blocks <= most; });
  return out;
}

void multiply_values(const BlockRows& a, const BlockRows& b, int longest, BlockRows& out, Stream& stream) {
  if (out.value.bytes() == 0) {
    const std::int64_t values = out.blocks * out.block_entries();
    require_memory(stream.device(), 8 * values, "a product of multigrid's set-up");
    out.value = array<double>(values, stream);
  }
  const Operands p{a.count,
                   a.start.as<std::int64_t>(),
                   b.start.as<std::int64_t>(),
                   out.start.as<std::int64_t>(),
                   a.column.as<std::int32_t>(),
                   b.column.as<std::int32_t>(),
                   out.column.as<std::int32_t>(),
                   a.value.as<double>(),
                   b.value.as<double>(),
                   out.value.as<double>(),
                   a.row_size,
                   a.col_size,
                   b.col_size,
                   longest,
                   false};
  const std::int64_t mean_terms = b.blocks / std::max<std::int64_t>(1, b.count) * out.block_entries();
  const auto is = [&](int r, int t, int m) { return p.row_size == r && p.inner == t && p.col_size == m; };
  if (is(1, 1, 1)) run<1, 1, 1>(p, mean_terms, stream);
  else if (is(2, 2, 3)) run<2, 2, 3>(p, mean_terms, stream);
  else if (is(3, 2, 3)) run<3, 2, 3>(p, mean_terms, stream);
  else if (is(3, 3, 3)) run<3, 3, 3>(p, mean_terms, stream);
  else if (is(3, 3, 6)) run<3, 3, 6>(p, mean_terms, stream);
  else if (is(6, 3, 6)) run<6, 3, 6>(p, mean_terms, stream);
  else if (is(6, 6, 6)) run<6, 6, 6>(p, mean_terms, stream);
  else run<0, 0, 0>(p, mean_terms, stream);
}

}  // namespace shardmat::blocks
