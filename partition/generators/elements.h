// Element matrices of the finite elements, one row of nodes at a time. Gradients are scaled by
// sqrt(weight·volume) at each quadrature point, so that an integral is a sum of plain products: swapping two
// nodes swaps commuting factors only, and assembled matrices are symmetric to the last bit. See Zienkiewicz,
// Taylor: The Finite Element Method, vol. 1.
#pragma once

#include <cstdint>

namespace shardmat {

template <int Nodes, int Points>
struct ElementGradients {
  static constexpr int kNodes = Nodes;
  static constexpr int kPoints = Points;
  double at[Points][3][Nodes];
};

using Hex8Gradients = ElementGradients<8, 8>;    ///< trilinear hexahedron, 2x2x2 Gauss points
using Tet4Gradients = ElementGradients<4, 1>;    ///< linear tetrahedron
using Tet10Gradients = ElementGradients<10, 4>;  ///< quadratic tetrahedron with straight edges, exact with 4 points

/// Node dx + 2·dy + 4·dz of a hexahedron is its corner (dx, dy, dz). x[d][node] is a coordinate; the element
/// must be convex enough for a positive Jacobian.
void compute_gradients(const double (&x)[3][8], Hex8Gradients& gradients);
/// Nodes 0-3 are the vertices, in positive orientation; then the middles of edges 01, 02, 03, 12, 13, 23.
void compute_gradients(const double (&x)[3][4], Tet4Gradients& gradients);
void compute_gradients(const double (&x)[3][4], Tet10Gradients& gradients);

/// What the mass matrix needs of a tetrahedron with this many nodes.
template <int Nodes>
struct TetVolume {
  static constexpr int kNodes = Nodes;
  double volume;  ///< not a number if it underflows, so that no mass is lost unseen
};
double tetrahedron_volume(const double (&x)[3][4]);

/// The shape functions at the points, scaled like gradients.
struct Hex8Values {
  double at[8][8];  ///< [point][node]
};
void compute_values(const double (&x)[3][8], Hex8Values& values);

/// What Diffusion and Elasticity have in common.
struct GradientPhysics {
  using Hexahedron = Hex8Gradients;
  using Tetrahedron4 = Tet4Gradients;
  using Tetrahedron10 = Tet10Gradients;
  template <int Corners, class Gradients>
  static void integrate(const double (&x)[3][Corners], Gradients& gradients) {
    compute_gradients(x, gradients);
  }
};

/// -∇·(k ∇u): one unknown a node.
struct Diffusion : GradientPhysics {
  static constexpr int kUnknowns = 1;
  static constexpr int kCoupled = 1;  ///< unknowns of a neighbour that a row couples with
  /// row[0][b] = entry (a, b) of the element matrix for the coefficient k.
  template <int Nodes, int Points>
  void element_row(const ElementGradients<Nodes, Points>& gradients, int a, double k, double (&row)[1][Nodes]) const {
    double sum[Nodes] = {};
    for (int p = 0; p < Points; ++p)
      for (int i = 0; i < 3; ++i)
        for (int b = 0; b < Nodes; ++b) sum[b] += gradients.at[p][i][a] * gradients.at[p][i][b];
    for (int b = 0; b < Nodes; ++b) row[0][b] = k * sum[b];
  }
};

/// Isotropic linear elasticity: displacements (u_x, u_y, u_z) at each node.
struct Elasticity : GradientPhysics {
  static constexpr int kUnknowns = 3;
  static constexpr int kCoupled = 3;
  double lambda = 0;  ///< Lamé's constants
  double mu = 0;

  Elasticity(double young, double poisson)
      : lambda(young * poisson / ((1 + poisson) * (1 - 2 * poisson))), mu(young / (2 * (1 + poisson))) {}

  /// row[3·i + j][b] = entry of the element matrix at unknown i of node a and unknown j of node b; the
  /// modulus of this element is `factor` times the material's.
  template <int Nodes, int Points>
  void element_row(const ElementGradients<Nodes, Points>& gradients, int a, double factor, double (&row)[9][Nodes]) const {
    double products[9][Nodes];  // ∫ ∂N_a/∂x_i · ∂N_b/∂x_j
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        double sum[Nodes] = {};
        for (int p = 0; p < Points; ++p)
          for (int b = 0; b < Nodes; ++b) sum[b] += gradients.at[p][i][a] * gradients.at[p][j][b];
        for (int b = 0; b < Nodes; ++b) products[3 * i + j][b] = sum[b];
      }
    const double l = lambda * factor, m = mu * factor;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        for (int b = 0; b < Nodes; ++b) row[3 * i + j][b] = l * products[3 * i + j][b] + m * products[3 * j + i][b];
    for (int b = 0; b < Nodes; ++b) {
      const double trace = m * (products[0][b] + products[4][b] + products[8][b]);
      for (int i = 0; i < 3; ++i) row[4 * i][b] += trace;
    }
  }
};

/// The mass of tetrahedra for the density 1: a row couples equal components only.
struct TetMass {
  static constexpr int kUnknowns = 3;
  static constexpr int kCoupled = 1;
  using Tetrahedron4 = TetVolume<4>;
  using Tetrahedron10 = TetVolume<10>;
  bool lumped = false;  ///< the diagonal is scaled so that it holds the mass of each element (Hinton, Rock and Zienkiewicz)

  template <int Nodes>
  static void integrate(const double (&x)[3][4], TetVolume<Nodes>& of) {
    of.volume = tetrahedron_volume(x);
  }
  /// row[0][b] = ∫ N_a N_b.
  void element_row(const TetVolume<4>& of, int a, double factor, double (&row)[1][4]) const;
  void element_row(const TetVolume<10>& of, int a, double factor, double (&row)[1][10]) const;
};

}  // namespace shardmat
