// What the set-up in host memory and the one on a GPU have in common: limits and steps, measured or from papers.
#pragma once

namespace shardmat::multigrid {

/// A level that keeps more of the unknowns is not worth having.
inline constexpr double kLeastCoarsening = 0.8;
/// P is smoothed by this share of 1/radius, for nodes of so many unknowns. 4/3 gives the least bound of the energy (Vaněk,
/// Mandel and Brezina). Measured on grids and meshes: with 1.6, nodes of one unknown take 1 to 2 iterations of 12 less than
/// with 4/3, and with 1.8 they do not. With 1.4, elasticity takes 0 to 1 less, but stiff inclusions took 26 in place of 20.
constexpr double damping(int unknowns) { return unknowns == 1 ? 1.6 : 4.0 / 3; }
inline constexpr int kLanczosSteps = 10, kStepsOfRefresh = 3;
/// Matrices that are less symmetric get a hierarchy of their own. Measured on convection and diffusion: from 0.04 on (cell
/// Peclet number 0.1) the smoothed one takes more iterations.
inline constexpr double kMostAsymmetry = 0.03;

/// More modes for a node's unknowns need more: within 2, nine of tetrahedra take 1.5 times the time and 1.4 to 1.8 times the
/// iterations, and two for one unknown take nine times the iterations where coefficients jump.
constexpr double most_complexity(int unknowns, int modes) {
  if (unknowns == 1 && modes > 1) return 8;
  return modes > 6 ? 3 : 2;
}

/// The next strength to try; 0 is the last one.
constexpr double next_strength(double strength) {
  constexpr double kLeastStrength = 0.01;
  return strength > kLeastStrength ? strength / 2 : 0;
}

}  // namespace shardmat::multigrid
