// What the set-ups of multigrid in host memory and on a GPU do with small dense blocks, row-major. Sizes are known when
// compiling, or 0: at run time.
//
// Threads: any.
#pragma once

#include <cmath>

#include "kernels/base/host_device.h"
#include "kernels/blocks/block_rows.h"

namespace shardmat::blocks {

/// Inverts a symmetric s × s block along the directions in which it is regular: those of the others become 0. By Gauss and
/// Jordan with pivots on the diagonal; those that vanish beside what stood there are left out.
template <int kS>
SHARDMAT_HOST_DEVICE void invert_symmetric(const double* a, double* inverse, int size_at_run = kS) {
  constexpr double kSingular = 1e-13;
  constexpr int kRoom = kS > 0 ? kS : kMostUnknowns;
  const int s = kS > 0 ? kS : size_at_run;
  double m[kRoom][2 * kRoom];
  bool left_out[kRoom] = {}, done[kRoom] = {};
  for (int i = 0; i < s; ++i)
    for (int j = 0; j < s; ++j) m[i][j] = a[i * s + j], m[i][s + j] = i == j ? 1 : 0;
  for (int step = 0; step < s; ++step) {
    const auto left = [&](int i) { return a[i * s + i] == 0 ? 0 : fabs(m[i][i] / a[i * s + i]); };
    int pivot = -1;
    for (int i = 0; i < s; ++i)
      if (!done[i] && (pivot < 0 || left(i) > left(pivot))) pivot = i;
    done[pivot] = true;
    if (!(left(pivot) > kSingular)) {
      left_out[pivot] = true;
      continue;
    }
    const double factor = 1 / m[pivot][pivot];
    for (int j = 0; j < 2 * s; ++j) m[pivot][j] *= factor;
    for (int i = 0; i < s; ++i) {
      const double times = m[i][pivot];
      if (i == pivot || times == 0) continue;
      for (int j = 0; j < 2 * s; ++j) m[i][j] -= times * m[pivot][j];
    }
  }
  for (int i = 0; i < s; ++i)
    for (int j = 0; j < s; ++j) inverse[i * s + j] = left_out[i] || left_out[j] ? 0 : m[i][s + j];
}

/// Is a singular value of D_i^(-1/2)·B·D_j^(-1/2) below `free`? If none is, B·D_j⁻¹·Bᵀ − free²·D_i is positive definite, and
/// so Cholesky's pivots are. The node of fewer unknowns in B takes the place of i.
template <int kS>
SHARDMAT_HOST_DEVICE bool is_hinge(double free, const double* b, const double* d_i, const double* inverse_i,
                                   const double* d_j, const double* inverse_j, int size_at_run = kS) {
  constexpr int kRoom = kS > 0 ? kS : kMostUnknowns;
  const int s = kS > 0 ? kS : size_at_run;
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
      double sum = -free * free * d[own[p] * s + own[q]];
      for (int e = 0; e < s; ++e) sum += product[e] * b[own[q] * along + e * down];
      for (int e = 0; e < q; ++e) sum -= factor[p][e] * factor[q][e];
      if (q == p && !(sum > 0)) return true;
      factor[p][q] = q < p ? sum / factor[q][q] : sqrt(sum);
    }
  }
  return false;
}

/// Of the stiffness of either node. Measured on inclusions of 1 : 10⁴, tetrahedra, beams and plates: 1/1000 misses hinges,
/// and 1/200 costs complexity.
constexpr double kFree = 1.0 / 500;

}  // namespace shardmat::blocks
