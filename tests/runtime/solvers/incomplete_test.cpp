// Incomplete factors against plain dense ones, and what they make of hard systems.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "runtime/solvers/incomplete/factors.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "tests/runtime/solvers/own_system.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using test::csr_of;
using test::Own;
using test::System;
using test::whole_matrix;
using test::x_at;

/// A dense matrix of blocks.
struct Plain {
  std::int64_t n;
  HostVector<double> value = HostVector<double>(at(n * n), 0);
  double& operator()(std::int64_t i, std::int64_t j) { return value[at(i * n + j)]; }
};

/// b becomes a⁻¹·b, with b of a.n × columns, by Gauss with pivots.
void solve_plain(Plain a, HostVector<double>& b) {
  const std::int64_t n = a.n, columns = std::ssize(b) / std::max<std::int64_t>(n, 1);
  for (std::int64_t p = 0; p < n; ++p) {
    std::int64_t best = p;
    for (std::int64_t i = p; i < n; ++i)
      if (std::abs(a(i, p)) > std::abs(a(best, p))) best = i;
    for (std::int64_t j = 0; j < n; ++j) std::swap(a(p, j), a(best, j));
    for (std::int64_t j = 0; j < columns; ++j) std::swap(b[at(p * columns + j)], b[at(best * columns + j)]);
    for (std::int64_t i = 0; i < n; ++i) {
      if (i == p) continue;
      const double factor = a(i, p) / a(p, p);
      for (std::int64_t j = p; j < n; ++j) a(i, j) -= factor * a(p, j);
      for (std::int64_t j = 0; j < columns; ++j) b[at(i * columns + j)] -= factor * b[at(p * columns + j)];
    }
  }
  for (std::int64_t p = 0; p < n; ++p)
    for (std::int64_t j = 0; j < columns; ++j) b[at(p * columns + j)] /= a(p, p);
}

/// What incomplete factors approximate `a` by: (L + I)·D·(I + U) where the levels of blocks of s are at most `most`.
Plain approximated(const Plain& a, std::int64_t s, int most, bool symmetric) {
  const std::int64_t n = a.n, blocks = n / s;
  Plain given = a, level{blocks};
  for (std::int64_t i = 0; i < blocks; ++i)
    for (std::int64_t j = 0; j < blocks; ++j) {
      level(i, j) = i == j ? 0 : 1e9;
      for (std::int64_t e = 0; e < s * s; ++e)
        if (given(i * s + e / s, j * s + e % s) != 0) level(i, j) = 0;
    }
  for (std::int64_t i = 0; i < blocks; ++i)
    for (std::int64_t k = 0; k < i; ++k)
      for (std::int64_t j = k + 1; level(i, k) <= most && j < blocks; ++j)
        if (level(k, j) <= most) level(i, j) = std::min(level(i, j), level(i, k) + level(k, j) + 1);
  Plain l{n}, u{n};  // u with D, l with ones
  for (std::int64_t i = 0; i < n; ++i) l(i, i) = 1;
  for (std::int64_t i = 0; i < blocks; ++i)
    for (std::int64_t j = 0; j < blocks; ++j) {
      if (level(i, j) > most || (symmetric && j > i)) continue;
      HostVector<double> sum(at(s * s));
      for (std::int64_t r = 0; r < s; ++r)
        for (std::int64_t c = 0; c < s; ++c) {
          double& entry = sum[at(r * s + c)] = given(i * s + r, j * s + c);
          for (std::int64_t k = 0; k < std::min(i, j) * s; ++k) {
            if (!symmetric) entry -= l(i * s + r, k) * u(k, j * s + c);
            else  // L·D·Lᵀ from the blocks of L and D alone
              for (std::int64_t m = k / s * s; m < (k / s + 1) * s; ++m)
                entry -= l(i * s + r, k) * u(k, m) * l(j * s + c, m);
          }
        }
      if (j < i) {  // times the inverse of D
        Plain turned{s};
        HostVector<double> right(at(s * s));
        for (std::int64_t r = 0; r < s; ++r)
          for (std::int64_t c = 0; c < s; ++c)
            turned(r, c) = u(j * s + c, j * s + r), right[at(c * s + r)] = sum[at(r * s + c)];
        solve_plain(turned, right);
        for (std::int64_t r = 0; r < s; ++r)
          for (std::int64_t c = 0; c < s; ++c) l(i * s + r, j * s + c) = right[at(c * s + r)];
      } else {
        for (std::int64_t r = 0; r < s; ++r)
          for (std::int64_t c = 0; c < s; ++c) u(i * s + r, j * s + c) = sum[at(r * s + c)];
      }
    }
  if (symmetric) {
    Plain d = u;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        u(i, j) = 0;
        for (std::int64_t k = i / s * s; k < (i / s + 1) * s; ++k) u(i, j) += d(i, k) * l(j, k);
      }
  }
  Plain product{n};
  double worst = 0, largest = 0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t k = 0; k < n; ++k) product(i, j) += l(i, k) * u(k, j);
      if (level(i / s, j / s) <= most) worst = std::max(worst, std::abs(product(i, j) - given(i, j)));
      largest = std::max(largest, std::abs(given(i, j)));
    }
  EXPECT_LE(worst, 1e-12 * largest) << "L·U is not A on its pattern";
  return product;
}

struct Asked {
  bool symmetric;
  int size, levels, overlap;
};

/// z = M·r of all rows; `starts`: of the ranks.
HostVector<double> plain_result(const HostCsr& a, const std::vector<std::int64_t>& starts, const HostVector<double>& r,
                                const Asked& asked) {
  const std::int64_t s = asked.size;
  std::vector<std::vector<std::int64_t>> rows_of;
  HostVector<double> count(r.size(), 0), z(r.size(), 0);
  for (std::size_t p = 0; p + 1 < starts.size(); ++p) {
    HostVector<char> taken(r.size(), 0);
    for (std::int64_t i = starts[p]; i < starts[p + 1]; ++i) {
      taken[at(i)] = 1;
      for (std::int64_t k = a.row_ptr[at(i)]; asked.overlap > 0 && k < a.row_ptr[at(i) + 1]; ++k)
        for (std::int64_t u = 0; u < s; ++u) taken[at(a.col_idx[at(k)] / s * s + u)] = 1;
    }
    rows_of.emplace_back();
    for (std::int64_t i = 0; i < a.rows; ++i)
      if (taken[at(i)] != 0) rows_of.back().push_back(i), count[at(i)] += 1;
  }
  for (std::size_t p = 0; p + 1 < starts.size(); ++p) {
    const std::vector<std::int64_t>& rows = rows_of[p];
    Plain part{std::ssize(rows)};
    HostVector<double> x;
    for (std::int64_t i = 0; i < part.n; ++i) {
      const std::int64_t row = rows[at(i)];
      x.push_back(r[at(row)] / (asked.symmetric ? std::sqrt(count[at(row)]) : 1));
      for (std::int64_t k = a.row_ptr[at(row)]; k < a.row_ptr[at(row) + 1]; ++k) {
        const auto found = std::lower_bound(rows.begin(), rows.end(), a.col_idx[at(k)]);
        if (found != rows.end() && *found == a.col_idx[at(k)]) part(i, found - rows.begin()) = a.values[at(k)];
      }
    }
    solve_plain(approximated(part, s, asked.levels, asked.symmetric), x);
    for (std::int64_t i = 0; i < part.n; ++i) {
      const std::int64_t row = rows[at(i)];
      if (asked.symmetric) z[at(row)] += x[at(i)] / std::sqrt(count[at(row)]);
      else if (row >= starts[p] && row < starts[p + 1]) z[at(row)] = x[at(i)];
    }
  }
  return z;
}

SolverOptions options_for(const char* preconditioner, const Case& c, ValueType inner = ValueType::f64) {
  SolverOptions options = test::options_of(std::string_view(preconditioner) == "ic" ? "cg" : "gmres", preconditioner, c);
  options.preconditioning.multigrid.inner = inner;
  return options;
}

void are_those_of_a_plain_loop(const Case& c) {
  const std::vector<std::pair<const char*, int>> systems{{"convection_diffusion:nx=5,ny=4,nz=4,peclet=10", 1},
                                                         {"poisson7:n=5,inclusions=1e4", 1},
                                                         {"elasticity:n=4,clamp=0.3", 3}};
  for (const auto& [specification, size] : systems) {
    const HostCsr a = whole_matrix(specification);
    for (const std::int64_t columns : {1, 2}) {
      System system(c, specification, columns, columns == 2 ? LocalSort::by_length : LocalSort::none);
      for (const bool symmetric : {false, true})
        for (const int levels : {0, 1})
          for (const int overlap : {0, 1})
            for (const ValueType inner : {ValueType::f64, ValueType::f32}) {
              if (symmetric && specification[0] == 'c') continue;
              if (columns == 2 && levels == 1) continue;
              if (size == 3 && levels + overlap > 1 && inner == ValueType::f32) continue;  // plain loops take long
              SCOPED_TRACE(std::string(specification) + (symmetric ? " ic" : " ilu") + std::to_string(levels) + " overlap " +
                           std::to_string(overlap) + " columns " + std::to_string(columns));
              SolverOptions options = options_for(symmetric ? "ic" : "ilu", c, inner);
              options.columns = columns, options.preconditioning.factor.levels = levels;
              options.preconditioning.factor.overlap = overlap, options.preconditioning.factor.order = "natural";
              Solver solver(system.at.matrix, options);
              solver.precondition(system.b, system.x);
              HostVector<double> z = system.x.gather(system.stream()), r = system.b.gather(system.stream());
              z.resize(at(a.rows * columns)), r.resize(z.size());
              world().broadcast(std::span<double>(z), 0), world().broadcast(std::span<double>(r), 0);
              for (std::int64_t j = 0; j < columns; ++j) {
                HostVector<double> of_column;
                for (std::int64_t i = 0; i < a.rows; ++i) of_column.push_back(r[at(i * columns + j)]);
                const HostVector<double> expected =
                    plain_result(a, system.at.matrix.y_rows()->starts(), of_column, {symmetric, size, levels, overlap});
                double worst = 0, largest = 0;
                for (std::int64_t i = 0; i < a.rows; ++i) {
                  worst = std::max(worst, std::abs(z[at(i * columns + j)] - expected[at(i)]));
                  largest = std::max(largest, std::abs(expected[at(i)]));
                }
                const bool exact = inner == ValueType::f64 && c.type == ValueType::f64;
                EXPECT_LE(worst, (exact ? 1e-10 : 1e-4) * largest);
                if (!exact && c.type == ValueType::f64) {
                  EXPECT_GT(worst, 1e-13 * largest) << "values are not in f32";
                }
              }
            }
    }
  }
}
SHARDMAT_VECTOR_TEST(Incomplete, AreThoseOfAPlainLoop, are_those_of_a_plain_loop)

/// Without fill that is left out, factors are exact: one iteration, on one rank.
TEST(Incomplete, AreExactWhereNothingIsLeftOut) {
  const HostCsr tridiagonal = csr_of(90, [](std::int64_t i, const auto& entry) {
    entry(i - 1, -1.5), entry(i, 3 + 0.1 * static_cast<double>(i % 7)), entry(i + 1, -0.5);
  });
  const auto iterations = [](const HostCsr& a, const SolverOptions& options) {
    Own own(a, context_of(kHost64));
    Solver solver(*own.matrix, options);
    const SolveResult result = solver.solve(*own.b, *own.x);
    EXPECT_TRUE(result.converged());
    EXPECT_LE(own.backward_error(), 1e-9);
    return result.iterations;
  };
  SolverOptions options = options_for("ilu", kHost64);
  const std::int64_t ranks = world().size();
  EXPECT_LE(iterations(tridiagonal, options), ranks == 1 ? 1 : 2 * ranks + 1);
  options.preconditioning.factor.overlap = 1;
  EXPECT_LE(iterations(tridiagonal, options), ranks == 1 ? 1 : 2 * ranks + 1);
  // All fill is kept.
  const HostCsr grid = whole_matrix("convection_diffusion:nx=7,ny=6,nz=1,peclet=10,wind=rotating");
  for (const int which : {0, 1, 2}) {
    options = options_for("ilu", kHost64);
    FactorOptions& factor = options.preconditioning.factor;
    if (which == 0) factor.levels = 20;
    else factor.drop_tolerance = 1e-14, factor.fill = 100, factor.order = which == 1 ? "natural" : "rcm";
    const std::int64_t found = iterations(grid, options);
    if (ranks == 1) {
      EXPECT_EQ(found, 1) << which;
    }
  }
  if (ranks > 1) return;
  options = options_for("ic", kHost64);
  options.preconditioning.factor.drop_tolerance = 1e-14, options.preconditioning.factor.fill = 100;
  EXPECT_EQ(iterations(whole_matrix("poisson7:nx=7,ny=6,nz=1,inclusions=100"), options), 1);
}

/// Fewer iterations with more fill, and with overlap; all converge to what a plain loop says.
void converge_on_hard_systems(const Case& c) {
  const std::vector<const char*> systems{"convection_diffusion:n=10,peclet=100,wind=rotating",
                                         "poisson7:n=10,inclusions=1e4", "elasticity:size=1x1x6,n=3,clamp=0.05"};
  for (const char* const specification : systems) {
    const HostCsr a = whole_matrix(specification);
    System system(c, specification, 1);
    const bool symmetric = specification[0] != 'c';
    for (const char* const preconditioner : {"ilu", "ic"}) {
      if (preconditioner == std::string_view("ic") && !symmetric) continue;
      for (const test::Form& form : test::forms()) {
        if (form.method == "chebyshev" || !test::is_taken(preconditioner, form.method)) continue;
        if (!symmetric && find_method(form.method).demands != Demands::nothing) continue;
        for (const int size : {1, 3}) {
          if (size == 3 && specification[0] != 'e') continue;
          if (symmetric && form.method == "bicgstab") continue;  // beams: its recurrences diverge now and then, in f32
          std::int64_t before = 0;
          const bool is_first_form = form.method == "gmres" || form.variant == CgVariant::classic;
          for (const int more : {0, 1, 2, 3}) {  // fill, overlap, a tolerance for fill
            if (more > 0 && !is_first_form) continue;
            SCOPED_TRACE(form.text() + " " + preconditioner + std::to_string(more) + " " + std::to_string(size) + " " +
                         specification);
            SolverOptions options = test::options_of(form, preconditioner, c);
            options.preconditioning.node_block_size = size;
            options.preconditioning.multigrid.inner = size == 3 ? ValueType::f32 : ValueType::f64;
            FactorOptions& factor = options.preconditioning.factor;
            if (more == 1) factor.levels = 1;
            if (more == 2) factor.overlap = 1;
            if (more == 3) factor.drop_tolerance = 1e-2, factor.fill = 3;
            system.x.fill(0, system.stream());
            const SolveResult result = Solver(system.at.matrix, options).solve(system.b, system.x);
            EXPECT_TRUE(result.converged()) << name(result.columns[0].reason);
            EXPECT_LE(system.residual(a, 0), 1.1 * *options.rtol * result.columns[0].norm_of_b);
            if (more == 0) before = result.iterations;
            if (c.type == ValueType::f64 && form.method != "bicgstab") {
              if (more == 2 && preconditioner == std::string_view("ilu")) {
                EXPECT_LE(result.iterations, before + 1);  // sums may round
              }
              if (more == 2 && world().size() == 1) {
                EXPECT_NEAR(static_cast<double>(result.iterations), static_cast<double>(before), 1);
              }
              if (more == 1 || more == 3) {
                EXPECT_LE(result.iterations, before);
              }
            }
          }
        }
      }
    }
  }
}
SHARDMAT_VECTOR_TEST(Incomplete, ConvergeOnHardSystems, converge_on_hard_systems)

/// Kershaw's matrix, which is positive definite and has no incomplete Cholesky factors; and pivots of 0.
TEST(Incomplete, AreShiftedWherePivotsAreBad) {
  const HostCsr kershaw = csr_of(120, [](std::int64_t i, const auto& entry) {
    const std::int64_t first = i / 4 * 4;
    constexpr double kRows[4][4] = {{3, -2, 0, 2}, {-2, 3, -2, 0}, {0, -2, 3, -2}, {2, 0, -2, 3}};
    for (std::int64_t j = 0; j < 4; ++j)
      if (kRows[i - first][j] != 0) entry(first + j, kRows[i - first][j]);
  });
  Own own(kershaw, context_of(kHost64));
  SolverOptions options = options_for("ic", kHost64);
  options.preconditioning.node_block_size = 1;
  Solver solver(*own.matrix, options);
  EXPECT_NE(solver.preconditioner().describe().find("pivots of 0 or below were met"), std::string::npos)
      << solver.preconditioner().describe();
  EXPECT_TRUE(solver.solve(*own.b, *own.x).converged());
  EXPECT_LE(own.backward_error(), 1e-8);
  options.solver = "minres";
  EXPECT_TRUE(Solver(*own.matrix, options).solve(*own.b, *own.x).converged());

  const HostCsr saddle = csr_of(120, [](std::int64_t i, const auto& entry) {  // pairs with a pivot of 0
    if (i % 2 == 1) entry(i - 1, 2);
    else entry(i, 0), entry(i + 1, 1);
  });
  Own pairs(saddle, context_of(kHost64));
  options = options_for("ilu", kHost64);
  options.preconditioning.node_block_size = 1;
  Solver of_pairs(*pairs.matrix, options);
  EXPECT_NE(of_pairs.preconditioner().describe().find("pivots of 0 were met"), std::string::npos);
  EXPECT_TRUE(of_pairs.solve(*pairs.b, *pairs.x).converged());
}

TEST(Incomplete, RefuseWhatHasNoFactors) {
  const auto refusal = [](ErrorKind kind, const HostCsr& a, const SolverOptions& options) {
    Own own(a, context_of(kHost64));
    return error_of(kind, [&] { Solver(*own.matrix, options); });
  };
  const HostCsr grid = whole_matrix("convection_diffusion:nx=6,ny=5,nz=1,peclet=10");
  EXPECT_NE(refusal(ErrorKind::usage, grid, options_for("ic", kHost64)).find("take ilu"), std::string::npos);
  SolverOptions options = options_for("ilu", kHost64);
  options.solver = "cg", options.assume_symmetric = true;
  EXPECT_NE(refusal(ErrorKind::usage, grid, options).find("take ic, or gmres"), std::string::npos);
  const HostCsr zeros = csr_of(50, [](std::int64_t i, const auto& entry) { entry(i, i == 20 ? 0 : 3); });
  EXPECT_NE(refusal(ErrorKind::input, zeros, options_for("ilu", kHost64)).find("has no pivot for ilu"), std::string::npos);
  options = options_for("ilu", kHost64);
  options.preconditioning.node_block_size = 7;
  EXPECT_NE(refusal(ErrorKind::usage, zeros, options).find("1 to 6"), std::string::npos);
  options = options_for("ilu", kHost64);
  options.preconditioning.factor.sweeps = 2;
  EXPECT_NE(refusal(ErrorKind::usage, grid, options).find("on a GPU; the host's are exact"), std::string::npos);
}

/// New values give what a new solver gives, bit by bit.
TEST(Incomplete, TakeNewValues) {
  const HostCsr a = whole_matrix("poisson7:n=9,inclusions=100");
  for (const char* const preconditioner : {"ilu", "ic"})
    for (const int overlap : {0, 1}) {
      Own own(a, context_of(kHost64)), fresh(a, context_of(kHost64));
      SolverOptions options = options_for(preconditioner, kHost64);
      options.preconditioning.factor.levels = 1, options.preconditioning.factor.overlap = overlap;
      Solver solver(*own.matrix, options);
      HostCsr stiffer = a;
      for (double& value : stiffer.values) value *= value > 0 ? 3 : 1.25;
      const std::int64_t first = own.matrix->y_rows()->starts()[at(world().rank())];
      const std::int64_t begin = a.row_ptr[at(first)], end = a.row_ptr[at(first + own.matrix->local_rows())];
      const auto mine = std::span<const double>(stiffer.values).subspan(at(begin), at(end - begin));
      own.matrix->update_values(mine, own.context.stream());
      fresh.matrix->update_values(mine, fresh.context.stream());
      solver.refresh();
      Solver other(*fresh.matrix, options);
      solver.precondition(*own.b, *own.x);
      other.precondition(*fresh.b, *fresh.x);
      EXPECT_EQ(own.x->own(own.context.stream()), fresh.x->own(fresh.context.stream()));
    }
}

/// Nodes numbered at random are put in another order.
TEST(Incomplete, OrderScatteredRows) {
  const HostCsr grid = whole_matrix("convection_diffusion:n=14,peclet=10,wind=rotating");
  constexpr std::int64_t kStep = 1009;  // a prime: another numbering
  const HostCsr scattered = csr_of(grid.rows, [&](std::int64_t i, const auto& entry) {
    const std::int64_t row = i * kStep % grid.rows;
    std::vector<std::pair<std::int64_t, double>> entries;
    std::int64_t inverse = 1;
    while (inverse * kStep % grid.rows != 1) ++inverse;
    for (std::int64_t k = grid.row_ptr[at(row)]; k < grid.row_ptr[at(row) + 1]; ++k)
      entries.emplace_back(grid.col_idx[at(k)] * inverse % grid.rows, grid.values[at(k)]);
    std::sort(entries.begin(), entries.end());
    for (const auto& [column, value] : entries) entry(column, value);
  });
  if (world().size() > 1) GTEST_SKIP() << "the rows of a rank are hardly coupled";
  std::int64_t of_natural = 0;
  for (const char* const order : {"natural", "auto"}) {
    Own own(scattered, context_of(kHost64));
    SolverOptions options = options_for("ilu", kHost64);
    options.preconditioning.factor.order = order;
    Solver solver(*own.matrix, options);
    const bool is_auto = order == std::string_view("auto");
    EXPECT_EQ(solver.preconditioner().describe().find("order rcm") != std::string::npos, is_auto);
    const SolveResult result = solver.solve(*own.b, *own.x);
    EXPECT_TRUE(result.converged());
    if (is_auto) {
      EXPECT_LT(result.iterations, of_natural);
    }
    of_natural = result.iterations;
  }
}

/// A grid of nodes with dense blocks of `size` unknowns.
HostCsr grid_of_blocks(std::int64_t size, bool symmetric) {
  constexpr std::int64_t kAcross = 9, kNodes = kAcross * kAcross * 4;
  return csr_of(kNodes * size, [&](std::int64_t i, const auto& entry) {
    const std::int64_t node = i / size;
    for (const std::int64_t step :
         {-kAcross * kAcross, -kAcross, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, kAcross, kAcross * kAcross}) {
      const std::int64_t other = node + step;
      if (other < 0 || other >= kNodes) continue;
      for (std::int64_t u = 0; u < size; ++u) {
        const std::int64_t j = other * size + u, low = std::min(i, j), high = std::max(i, j);
        const double upstream = symmetric || step >= 0 ? 1 : 3;
        entry(j, i == j ? 16.0 * static_cast<double>(size)
                        : -upstream * static_cast<double>((low * 31 + high * 17) % 11 + 1) / 11);
      }
    }
  });
}

/// What a GPU does is what the host does with the same factors, in any order, of blocks of any size.
void are_applied_as_on_the_host(const Case& c) {
  struct Wanted {
    const char* order;
    int levels;
    double tolerance;
    std::int64_t most_launches;
  };
  const std::vector<Wanted> all{{"natural", 0, 0, 0}, {"colours", 0, 0, 32}, {"clusters", 1, 0, 1000}, {"rcm", 0, 1e-3, 0}};
  for (const std::int64_t size : {1, 2, 3, 6})
    for (const bool symmetric : {false, true}) {
      const HostCsr a = grid_of_blocks(size, symmetric);
      for (const Wanted& asked : all)
        for (const std::int64_t columns : {1, 3})
          for (const ValueType inner : {ValueType::f64, ValueType::f32}) {
            if (inner == ValueType::f32 && columns > 1) continue;  // each is tried with the other
            SCOPED_TRACE(std::string(symmetric ? "ic " : "ilu ") + asked.order + " levels " + std::to_string(asked.levels) +
                         " size " + std::to_string(size) + " columns " + std::to_string(columns));
            HostVector<double> expected;
            for (const Case& where : {Case{BackendChoice::host, c.type}, c}) {
              Own own(a, context_of(where), columns, {c.type, false, size});
              SolverOptions options = options_for(symmetric ? "ic" : "ilu", c, inner);
              options.columns = static_cast<int>(columns);
              options.preconditioning.node_block_size = static_cast<int>(size);
              FactorOptions& factor = options.preconditioning.factor;
              factor.order = asked.order, factor.levels = asked.levels, factor.drop_tolerance = asked.tolerance;
              factor.most_launches = asked.most_launches;
              Solver solver(*own.matrix, options);
              for (int time = 0; time < 2; ++time) {  // the second one of new values
                if (time == 1) {
                  HostCsr stiffer = a;
                  for (double& value : stiffer.values) value *= value > 0 ? 3 : 1.25;
                  own.update(std::move(stiffer));
                  solver.refresh();
                }
                solver.precondition(*own.b, *own.x);
              }
              const HostVector<double> z = own.x->own(own.context.stream());
              if (expected.empty()) {
                expected = z;
                continue;
              }
              ASSERT_EQ(z.size(), expected.size());
              double worst = 0, largest = 0;
              for (std::size_t i = 0; i < z.size(); ++i) {
                const double error = std::abs(z[i] - expected[i]);
                worst = error <= worst ? worst : error, largest = std::max(largest, std::abs(expected[i]));
              }
              const bool exact = inner == ValueType::f64 && c.type == ValueType::f64;
              EXPECT_LE(worst, (exact ? 1e-12 : 1e-5) * largest);
            }
          }
    }
}
TEST(GpuIncomplete, AreAppliedAsOnTheHostF64) { on_gpus(are_applied_as_on_the_host, kCuda64); }
TEST(GpuIncomplete, AreAppliedAsOnTheHostF32) { on_gpus(are_applied_as_on_the_host, kCuda32); }
TEST(MultiGpuIncomplete, AreAppliedAsOnTheHostF64) { on_gpus(are_applied_as_on_the_host, kCuda64); }

/// With many sweeps they are the exact factors; with few, solves converge all the same.
void are_applied_by_sweeps(const Case& c) {
  for (const bool symmetric : {false, true})
    for (const std::int64_t size : {1, 3}) {
      Own own(grid_of_blocks(size, symmetric), context_of(c), 1, {c.type, false, size});
      SolverOptions options = options_for(symmetric ? "ic" : "ilu", c);
      options.preconditioning.node_block_size = static_cast<int>(size);
      HostVector<double> exact;
      for (const int sweeps : {0, 60, 1, 3}) {
        SCOPED_TRACE(sweeps);
        options.preconditioning.factor.order = "natural", options.preconditioning.factor.sweeps = sweeps;
        Solver solver(*own.matrix, options);
        EXPECT_EQ(solver.preconditioner().describe().find("Jacobi sweeps") != std::string::npos, sweeps > 0);
        solver.precondition(*own.b, *own.x);
        const HostVector<double> z = own.x->own(own.context.stream());
        if (sweeps == 0) exact = z;
        for (std::size_t i = 0; sweeps == 60 && i < z.size(); ++i)
          ASSERT_NEAR(z[i], exact[i], c.type == ValueType::f64 ? 1e-10 : 1e-5);
        own.x->fill(0, own.context.stream());
        EXPECT_TRUE(solver.solve(*own.b, *own.x).converged());
        EXPECT_LE(own.backward_error(), c.type == ValueType::f64 ? 1e-8 : 1e-3);
      }
    }
}
TEST(GpuIncomplete, AreAppliedBySweepsF64) { on_gpus(are_applied_by_sweeps, kCuda64); }
TEST(GpuIncomplete, AreAppliedBySweepsF32) { on_gpus(are_applied_by_sweeps, kCuda32); }
TEST(MultiGpuIncomplete, AreAppliedBySweepsF64) { on_gpus(are_applied_by_sweeps, kCuda64); }

/// Rows of a colour are coupled in no way but within a cluster, also after fill, and groups do not cut clusters.
TEST(Incomplete, ColoursAreNotCoupled) {
  for (const int matching : {0, 2, 3})
    for (const int levels : {0, 1}) {
      const HostCsr grid = whole_matrix("convection_diffusion:nx=41,ny=30,nz=23,peclet=2,wind=rotating");
      incomplete::SquareRows a{1, grid.row_ptr, {}, grid.values};
      for (const std::int64_t column : grid.col_idx) a.column.push_back(static_cast<std::int32_t>(column));
      const incomplete::Order order = incomplete::order_by_colours(a, matching, levels, false, 3);
      HostVector<std::int32_t> sorted = order.row;
      std::sort(sorted.begin(), sorted.end());
      for (std::int64_t i = 0; i < a.count(); ++i) ASSERT_EQ(sorted[at(i)], i);
      for (std::int64_t i = 0; i < a.count(); ++i) ASSERT_EQ(order.row[at(order.position[at(i)])], i);
      EXPECT_LT(std::ssize(order.phase), levels == 0 ? 12 : 80);
      if (matching == 0 && levels == 0) {
        EXPECT_EQ(order.phase.size(), 3U) << "a grid of 7 points has two colours";
      }
      HostVector<std::int32_t> group(at(a.count())), phase(at(a.count()));
      for (std::size_t p = 0; p + 1 < order.phase.size(); ++p)
        for (std::int32_t g = order.phase[p]; g < order.phase[p + 1]; ++g)
          for (std::int32_t i = order.group[at(g)]; i < order.group[at(g) + 1]; ++i)
            group[at(i)] = g, phase[at(i)] = static_cast<std::int32_t>(p);
      FactorOptions options;
      options.levels = levels;
      const incomplete::Pattern pattern = incomplete::find_pattern(a, order, options, false);
      for (std::int64_t i = 0; i < a.count(); ++i)
        for (std::int64_t k = pattern.start[at(i)]; k < pattern.start[at(i + 1)]; ++k) {
          const std::int64_t j = pattern.column[at(k)];
          if (i == j || phase[at(i)] != phase[at(j)]) continue;
          ASSERT_EQ(group[at(i)], group[at(j)]);
          ASSERT_LT(std::abs(i - j), 1 << matching);
        }
    }
}

/// Pieces that threads take: complete, not coupled, and with the same bits however many threads there are.
TEST(Incomplete, PiecesAreNotCoupled) {
  const HostCsr grid = whole_matrix("convection_diffusion:nx=260,ny=260,nz=1,peclet=10");
  incomplete::SquareRows a{1, grid.row_ptr, {}, grid.values};
  for (const std::int64_t column : grid.col_idx) a.column.push_back(static_cast<std::int32_t>(column));
  for (const bool rcm : {false, true}) {
    const incomplete::Order order = incomplete::find_order(a, rcm, 4);
    ASSERT_EQ(order.phase[1], 4);
    ASSERT_GT(order.groups(), 4);
    HostVector<std::int32_t> sorted = order.row;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t i = 0; i < a.count(); ++i) ASSERT_EQ(sorted[at(i)], i);
    HostVector<std::int32_t> group(at(a.count())), phase(at(a.count()));
    for (std::size_t p = 0; p + 1 < order.phase.size(); ++p)
      for (std::int32_t g = order.phase[p]; g < order.phase[p + 1]; ++g)
        for (std::int32_t i = order.group[at(g)]; i < order.group[at(g) + 1]; ++i)
          group[at(i)] = g, phase[at(i)] = static_cast<std::int32_t>(p);
    for (const int levels : {0, 1}) {
      FactorOptions options;
      options.levels = levels;
      const incomplete::Pattern pattern = incomplete::find_pattern(a, order, options, false);
      for (std::int64_t i = 0; i < a.count(); ++i)
        for (std::int64_t k = pattern.start[at(i)]; k < pattern.start[at(i + 1)]; ++k) {
          const std::size_t j = at(pattern.column[at(k)]);
          ASSERT_TRUE(group[at(i)] == group[j] || phase[at(i)] != phase[j]) << i << " " << j;
        }
      std::vector<HostVector<double>> results;
      for (const int threads : {1, 3}) {
        const ThreadCount scope(threads);
        auto factors = incomplete::make_factors(order, pattern, 1, false, ValueType::f64);
        factors->factorise(a);
        results.emplace_back();
        for (std::int64_t i = 0; i < a.count(); ++i) results.back().push_back(x_at(order.row[at(i)], 0));
        const auto nothing = [](std::int64_t, std::int64_t) {};
        factors->solve(results.back().data(), 1, nothing, nothing);
      }
      EXPECT_EQ(results[0], results[1]);
    }
  }
}

}  // namespace
}  // namespace shardmat
