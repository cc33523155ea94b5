#include "runtime/solvers/multigrid/hinges.h"

#include <cmath>

#include "kernels/base/parallel.h"
#include "runtime/solvers/multigrid/blocks.h"

namespace shardmat::multigrid {
namespace {

/// Of the stiffness of either node. Measured on inclusions of 1 : 10⁴, tetrahedra, beams and plates: 1/1000 misses hinges,
/// and 1/200 costs complexity.
constexpr double kFree = 1.0 / 500;

/// Is a singular value of D_i^(-1/2)·B·D_j^(-1/2) below kFree? If none is, B·D_j⁻¹·Bᵀ − kFree²·D_i is positive definite, and
/// so Cholesky's pivots are. The node of fewer unknowns in B takes the place of i.
template <int kSize>
bool is_hinge(const double* b, const double* d_i, const double* inverse_i, const double* d_j, const double* inverse_j,
              int size_at_run) {
  const int s = kSize > 0 ? kSize : size_at_run;
  constexpr int kRoom = kSize > 0 ? kSize : kMostUnknowns;
  int rows[kRoom], columns[kRoom], row_count = 0, column_count = 0;
  for (int p = 0; p < s; ++p) {
    bool in_row = false, in_column = false;
    for (int q = 0; q < s; ++q) in_row |= b[p * s + q] != 0, in_column |= b[q * s + p] != 0;
    if (in_row) rows[row_count++] = p;
    if (in_column) columns[column_count++] = p;
  }
  const bool turned = column_count < row_count;
  const int count = turned ? column_count : row_count, along = turned ? 1 : s, down = turned ? s : 1;
  const int* const own = turned ? columns : rows;
  const double *const d = turned ? d_j : d_i, *const inverse = turned ? inverse_i : inverse_j;
  double factor[kRoom][kRoom], product[kRoom];
  for (int p = 0; p < count; ++p) {
    const double* const row = b + own[p] * along;
    for (int q = 0; q < s; ++q) product[q] = 0;
    for (int e = 0; e < s; ++e)
      for (int q = 0; q < s; ++q) product[q] += row[e * down] * inverse[e * s + q];
    for (int q = 0; q <= p; ++q) {
      double sum = -kFree * kFree * d[own[p] * s + own[q]];
      for (int e = 0; e < s; ++e) sum += product[e] * b[own[q] * along + e * down];
      for (int e = 0; e < q; ++e) sum -= factor[p][e] * factor[q][e];
      if (q == p && !(sum > 0)) return true;
      factor[p][q] = q < p ? sum / factor[q][q] : std::sqrt(sum);
    }
  }
  return false;
}

}  // namespace

HostVector<char> find_hinges(const NodeRows& a, const HostVector<double>& inverse) {
  const int s = a.row_size;
  HostVector<char> hinges(at(a.blocks()), 0);
  parallel_ranges(a.count(), a.grain(), [&](std::int64_t begin, std::int64_t end) {
    with_sizes(s, s, [&]<int kS, int kM>(Known<kS>, Known<kM>) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t diagonal = a.find(i, static_cast<std::int32_t>(i));
        for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
          const std::int32_t j = a.column[at(k)];
          if (j >= a.count() || j == i) continue;
          const std::int64_t other = a.find(j, j);
          hinges[at(k)] = diagonal < 0 || other < 0 ||
                          is_hinge<kS>(a.block(k), a.block(diagonal), inverse.data() + i * s * s, a.block(other),
                                       inverse.data() + std::int64_t{j} * s * s, s);
        }
      }
    });
  });
  return hinges;
}

}  // namespace shardmat::multigrid
