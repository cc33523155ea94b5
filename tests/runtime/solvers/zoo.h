// Small systems that solvers find hard, each written down with what is known of it.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/runtime/solvers/own_system.h"

namespace shardmat::test {

/// What b is: of no particular kind, A times a vector, 0, or with a NaN.
enum class RightHandSide { any, consistent, zero, nan };

struct HardSystem {
  std::string name;
  std::function<HostCsr()> matrix;
  bool symmetric = true, definite = true;  ///< definite: A is positive definite
  RightHandSide b = RightHandSide::any;
  /// The dimension of the space that A and its transpose map to 0: constants, or rigid motions of nodes of three unknowns.
  int singular = 0;
  bool first_is_empty = false;
  std::int64_t cube = 0;  ///< the solver is told that the nodes are those of a cube of so many a side
};

/// −div(k grad u) on n × n cells with u = 0 around them; k(i, j) of a cell.
template <class K>
HostCsr diffusion(std::int64_t n, const K& k) {
  return csr_of(n * n, [&](std::int64_t row, const auto& entry) {
    const std::int64_t i = row % n, j = row / n;
    double diagonal = 0;
    const auto face = [&](std::int64_t a, std::int64_t b) {
      const bool inside = a >= 0 && b >= 0 && a < n && b < n;
      const double mine = k(i, j), other = inside ? k(a, b) : mine, both = 2 * mine * other / (mine + other);
      diagonal += both;
      return inside ? -both : 0.0;
    };
    const double below = face(i, j - 1), left = face(i - 1, j), right = face(i + 1, j), above = face(i, j + 1);
    if (j > 0) entry(row - n, below);
    if (i > 0) entry(row - 1, left);
    entry(row, diagonal);
    if (i + 1 < n) entry(row + 1, right);
    if (j + 1 < n) entry(row + n, above);
  });
}

/// Each entry times left(row) · right(column).
template <class Left, class Right>
HostCsr scaled(HostCsr a, const Left& left, const Right& right) {
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
         k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k)
      a.values[k] *= left(i) * right(a.col_idx[k]);
  return a;
}

/// A matrix of one entry a row.
inline HostCsr diagonal_of(std::int64_t n, const std::function<double(std::int64_t)>& value) {
  return csr_of(n, [&](std::int64_t i, const auto& entry) { entry(i, value(i)); });
}

/// Multipliers that hold differences of velocities: no entries among the multipliers at all.
inline HostCsr saddle_point(std::int64_t n) {
  const HostCsr k =
      diffusion(n, [](std::int64_t i, std::int64_t j) { return 1 + 0.25 * static_cast<double>((i + 2 * j) % 5); });
  const std::int64_t velocities = k.rows, pressures = velocities / 3;
  return csr_of(velocities + pressures, [&](std::int64_t row, const auto& entry) {
    if (row >= velocities) {
      const std::int64_t first = 3 * (row - velocities);
      entry(first, -1), entry(first + 2, 1.5);
      return;
    }
    for (auto at = static_cast<std::size_t>(k.row_ptr[static_cast<std::size_t>(row)]);
         at < static_cast<std::size_t>(k.row_ptr[static_cast<std::size_t>(row) + 1]); ++at)
      entry(k.col_idx[at], k.values[at]);
    if (row % 3 != 1 && row / 3 < pressures) entry(velocities + row / 3, row % 3 == 0 ? -1 : 1.5);
  });
}

inline std::vector<HardSystem> hard_systems() {
  const auto one = [](std::int64_t, std::int64_t) { return 1.0; };
  const auto smooth = [one](std::int64_t n) { return diffusion(n, one); };
  const auto swing = [](std::int64_t i, double decades) {
    return std::pow(10, decades * std::sin(0.7 * static_cast<double>(i)));
  };
  const auto wind = [](std::int64_t n, double peclet) {
    HostCsr a = diffusion(n, [](std::int64_t, std::int64_t) { return 1.0; });
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
           k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k) {
        if (a.col_idx[k] == i) a.values[k] += 1.5 * peclet;
        if (a.col_idx[k] == i - 1) a.values[k] -= peclet;
        if (a.col_idx[k] == i - n) a.values[k] -= 0.5 * peclet;
      }
    return a;
  };
  const auto jumps = [](double ratio) {
    return diffusion(16, [=](std::int64_t i, std::int64_t j) { return (i / 3 + j / 4) % 3 == 0 ? ratio : 1.0; });
  };
  const auto circle = [] {  // of nodes joined by springs, which nothing holds
    return csr_of(150, [](std::int64_t i, const auto& entry) {
      const auto spring = [](std::int64_t k) { return 1 + 0.5 * static_cast<double>(k % 7); };
      const double before = spring(i == 0 ? 149 : i - 1), after = spring(i);
      if (i == 149) entry(0, -after);
      if (i > 0) entry(i - 1, -before);
      entry(i, before + after);
      if (i < 149) entry(i + 1, -after);
      if (i == 0) entry(149, -before);
    });
  };
  return {
      {.name = "Poisson", .matrix = [=] { return smooth(15); }},
      {.name = "jumps", .matrix = [=] { return jumps(1e6); }},
      {.name = "jumps that f32 takes for singular", .matrix = [=] { return jumps(3e6); }},
      {.name = "slender beam", .matrix = [] { return whole_matrix("elasticity:nx=61,ny=2,nz=2,uniform,clamp=0.001"); }},
      {.name = "floating body, consistent",
       .matrix = [] { return whole_matrix("elasticity:n=4,uniform"); },
       .definite = false,
       .b = RightHandSide::consistent,
       .singular = 6},
      {.name = "floating body with coordinates",
       .matrix = [] { return whole_matrix("elasticity:n=4,uniform"); },
       .definite = false,
       .singular = 6,
       .cube = 4},
      {.name = "floating body, not consistent",
       .matrix = [] { return whole_matrix("elasticity:n=4,uniform"); },
       .definite = false,
       .singular = 6},
      {.name = "circle of springs", .matrix = circle, .definite = false, .singular = 1},
      {.name = "indefinite",
       .matrix =
           [=] {
             HostCsr a = smooth(14);
             for (std::int64_t i = 0; i < a.rows; ++i)
               for (auto k = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i)]);
                    k < static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(i) + 1]); ++k)
                 if (a.col_idx[k] == i) a.values[k] -= 0.4 + 0.01 * static_cast<double>(i % 3);
             return a;
           },
       .definite = false},
      {.name = "saddle point", .matrix = [] { return saddle_point(12); }, .definite = false},
      {.name = "convection", .matrix = [=] { return wind(16, 40); }, .symmetric = false, .definite = false},
      {.name = "rows scaled",
       .matrix =
           [=] {
             return scaled(
                 smooth(12), [=](auto i) { return swing(i, 12); }, [](auto) { return 1.0; });
           },
       .symmetric = false,
       .definite = false,
       .b = RightHandSide::consistent},
      {.name = "rows and columns scaled",
       .matrix =
           [=] {
             return scaled(
                 smooth(12), [=](auto i) { return swing(i, 6); }, [=](auto i) { return swing(i, 6); });
           },
       .b = RightHandSide::consistent},
      {.name = "cyclic shift",
       .matrix =
           [] {
             return csr_of(
                 48, [](std::int64_t i, const auto& entry) { entry((i + 1) % 48, 1 + 0.1 * static_cast<double>(i % 2)); });
           },
       .symmetric = false,
       .definite = false},
      {.name = "cyclic convection",
       .matrix =
           [] {
             return csr_of(64, [](std::int64_t i, const auto& entry) {
               if (i > 0) entry(i - 1, -1);
               entry(i, 1);
               if (i == 0) entry(63, -1);
             });
           },
       .symmetric = false,
       .definite = false,
       .singular = 1},
      {.name = "a rank without rows", .matrix = [=] { return smooth(9); }, .first_is_empty = true},
      {.name = "one row", .matrix = [] { return diagonal_of(1, [](auto) { return 3.0; }); }},
      {.name = "one row below 0", .matrix = [] { return diagonal_of(1, [](auto) { return -3.0; }); }, .definite = false},
      {.name = "diagonal",
       .matrix = [] { return diagonal_of(90, [](auto i) { return 1 + 0.3 * static_cast<double>(i % 40); }); }},
      {.name = "b is 0", .matrix = [=] { return smooth(9); }, .b = RightHandSide::zero},
      {.name = "NaN in b", .matrix = [=] { return smooth(9); }, .b = RightHandSide::nan},
  };
}

}  // namespace shardmat::test
