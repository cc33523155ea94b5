#include "partition/generators/elements.h"

#include <cmath>
#include <limits>

namespace shardmat {
namespace {

/// Derivatives of the trilinear shape functions in the unit coordinates, at the 2x2x2 Gauss points of [-1,
/// 1]^3.
struct Hex8Derivatives {
  double by_node[8][3][8];   ///< [node][direction][point]
  double by_point[8][3][8];  ///< [point][direction][node]
  double value[8][8];        ///< [point][node], of the functions themselves
};

constexpr Hex8Derivatives hex8_derivatives() {
  constexpr double kGauss = 0.57735026918962576451;  // 1/√3
  Hex8Derivatives table{};
  for (int node = 0; node < 8; ++node)
    for (int point = 0; point < 8; ++point) {
      double factor[3] = {}, slope[3] = {};
      for (int d = 0; d < 3; ++d) {
        const double side = (node >> d & 1) != 0 ? 1 : -1;
        const double place = (point >> d & 1) != 0 ? kGauss : -kGauss;
        factor[d] = (1 + side * place) / 2;
        slope[d] = side / 2;
      }
      table.value[point][node] = factor[0] * factor[1] * factor[2];
      for (int d = 0; d < 3; ++d) {
        const double value = slope[d] * factor[(d + 1) % 3] * factor[(d + 2) % 3];
        table.by_node[node][d][point] = value;
        table.by_point[point][d][node] = value;
      }
    }
  return table;
}

constexpr Hex8Derivatives kHex8 = hex8_derivatives();

/// The Jacobian's cofactors [coordinate][direction][point] and determinants at the Gauss points.
void compute_jacobians(const double (&x)[3][8], double (&cofactor)[3][3][8], double (&determinant)[8]) {
  double jacobian[3][3][8] = {};  // [direction][coordinate][point]
  for (int node = 0; node < 8; ++node)
    for (int k = 0; k < 3; ++k)
      for (int d = 0; d < 3; ++d)
        for (int p = 0; p < 8; ++p) jacobian[k][d][p] += kHex8.by_node[node][k][p] * x[d][node];
  for (int k = 0; k < 3; ++k)
    for (int d = 0; d < 3; ++d) {
      const int k1 = (k + 1) % 3, k2 = (k + 2) % 3, d1 = (d + 1) % 3, d2 = (d + 2) % 3;
      for (int p = 0; p < 8; ++p)
        cofactor[d][k][p] = jacobian[k1][d1][p] * jacobian[k2][d2][p] - jacobian[k1][d2][p] * jacobian[k2][d1][p];
    }
  for (int p = 0; p < 8; ++p)
    determinant[p] = jacobian[0][0][p] * cofactor[0][0][p] + jacobian[0][1][p] * cofactor[1][0][p] +
                     jacobian[0][2][p] * cofactor[2][0][p];
}

/// Gradients of the barycentric coordinates; returns the volume.
double barycentric_gradients(const double (&x)[3][4], double (&gradient)[4][3]) {
  double edge[3][3];
  for (int v = 0; v < 3; ++v)
    for (int d = 0; d < 3; ++d) edge[v][d] = x[d][v + 1] - x[d][0];
  double cross[3][3];
  for (int v = 0; v < 3; ++v) {
    const double* a = edge[(v + 1) % 3];
    const double* b = edge[(v + 2) % 3];
    for (int d = 0; d < 3; ++d) cross[v][d] = a[(d + 1) % 3] * b[(d + 2) % 3] - a[(d + 2) % 3] * b[(d + 1) % 3];
  }
  const double determinant = edge[0][0] * cross[0][0] + edge[0][1] * cross[0][1] + edge[0][2] * cross[0][2];
  for (int d = 0; d < 3; ++d) {
    for (int v = 0; v < 3; ++v) gradient[v + 1][d] = cross[v][d] / determinant;
    gradient[0][d] = -(gradient[1][d] + gradient[2][d] + gradient[3][d]);
  }
  return determinant / 6;
}

constexpr int kTetEdges[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};

/// 420 ∫ N_a N_b / volume of a quadratic tetrahedron with straight edges.
constexpr int tet10_mass(int a, int b) {
  if (a > b) return tet10_mass(b, a);
  if (b < 4) return a == b ? 6 : 1;
  const int* f = kTetEdges[b - 4];
  if (a < 4) return a == f[0] || a == f[1] ? -4 : -6;
  const int* e = kTetEdges[a - 4];
  const int shared = (e[0] == f[0]) + (e[0] == f[1]) + (e[1] == f[0]) + (e[1] == f[1]);
  return 8 << shared;
}

}  // namespace

double tetrahedron_volume(const double (&x)[3][4]) {
  double gradient[4][3];
  const double volume = barycentric_gradients(x, gradient);
  return volume >= std::numeric_limits<double>::min() ? volume : std::numeric_limits<double>::quiet_NaN();
}

void TetMass::element_row(const TetVolume<4>& of, int a, double factor, double (&row)[1][4]) const {
  for (int b = 0; b < 4; ++b) row[0][b] = factor * of.volume * (lumped ? (a == b) / 4.0 : (a == b ? 2 : 1) / 20.0);
}

void TetMass::element_row(const TetVolume<10>& of, int a, double factor, double (&row)[1][10]) const {
  constexpr double kDiagonal = 4 * 6 + 6 * 32;
  for (int b = 0; b < 10; ++b)
    row[0][b] = factor * of.volume * (lumped ? (a == b) * tet10_mass(a, a) / kDiagonal : tet10_mass(a, b) / 420.0);
}

void compute_gradients(const double (&x)[3][8], Hex8Gradients& gradients) {
  double cofactor[3][3][8], determinant[8];
  compute_jacobians(x, cofactor, determinant);
  for (int p = 0; p < 8; ++p) {
    const double scale = 1 / std::sqrt(determinant[p]);  // sqrt(det) / det
    for (int d = 0; d < 3; ++d) {
      const double c0 = cofactor[d][0][p] * scale, c1 = cofactor[d][1][p] * scale, c2 = cofactor[d][2][p] * scale;
      for (int b = 0; b < 8; ++b)
        gradients.at[p][d][b] = c0 * kHex8.by_point[p][0][b] + c1 * kHex8.by_point[p][1][b] + c2 * kHex8.by_point[p][2][b];
    }
  }
}

void compute_values(const double (&x)[3][8], Hex8Values& values) {
  double cofactor[3][3][8], determinant[8];
  compute_jacobians(x, cofactor, determinant);
  for (int p = 0; p < 8; ++p)
    for (int b = 0; b < 8; ++b) values.at[p][b] = kHex8.value[p][b] * std::sqrt(determinant[p]);
}

void compute_gradients(const double (&x)[3][4], Tet4Gradients& gradients) {
  double gradient[4][3];
  const double scale = std::sqrt(barycentric_gradients(x, gradient));
  for (int d = 0; d < 3; ++d)
    for (int v = 0; v < 4; ++v) gradients.at[0][d][v] = gradient[v][d] * scale;
}

void compute_gradients(const double (&x)[3][4], Tet10Gradients& gradients) {
  constexpr double kNear = 0.58541019662496845446, kFar = 0.13819660112501051518;  // (5 ± …√5)/20
  double gradient[4][3];
  const double scale = std::sqrt(barycentric_gradients(x, gradient) / 4);
  for (int p = 0; p < 4; ++p) {
    double weight[4];
    for (int v = 0; v < 4; ++v) weight[v] = v == p ? kNear : kFar;
    for (int d = 0; d < 3; ++d) {
      for (int v = 0; v < 4; ++v) gradients.at[p][d][v] = scale * (4 * weight[v] - 1) * gradient[v][d];
      for (int e = 0; e < 6; ++e) {
        const auto [u, v] = kTetEdges[e];
        gradients.at[p][d][4 + e] = scale * 4 * (weight[u] * gradient[v][d] + weight[v] * gradient[u][d]);
      }
    }
  }
}

}  // namespace shardmat
