// Each pass of multigrid's set-up on a GPU against its twin in host memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/blocks/block_product.h"
#include "kernels/blocks/half_product.h"
#include "kernels/blocks/setup.h"
#include "kernels/formats/kept_upload.h"
#include "kernels/matrix/csr.h"
#include "partition/source/row_source.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/random_entries.h"
#include "runtime/solvers/multigrid/aggregate.h"
#include "runtime/solvers/multigrid/asymmetry.h"
#include "runtime/solvers/multigrid/coarse.h"
#include "runtime/solvers/multigrid/free_modes.h"
#include "runtime/solvers/multigrid/galerkin.h"
#include "runtime/solvers/multigrid/hinges.h"
#include "runtime/solvers/multigrid/near_null_space.h"
#include "runtime/solvers/multigrid/prolong.h"
#include "runtime/solvers/multigrid/report.h"
#include "runtime/solvers/multigrid/take_nodes.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat {
namespace {

using namespace multigrid;
using blocks::BlockRows;
using test::coordinates_of;
using test::System;

template <class T>
HostVector<T> taken(const Buffer& from, Stream& stream) {
  HostVector<T> to(from.bytes() / sizeof(T));
  copy_to_host(to.data(), from.data(), from.bytes(), stream);
  return to;
}

template <class T>
Buffer given(const HostVector<T>& from, Stream& stream) {
  Buffer to(stream.device(), from.size() * sizeof(T));
  copy_to_device(to.data(), from.data(), to.bytes(), stream);
  return to;
}

void expect_near(const HostVector<double>& found, const HostVector<double>& wanted, double share, const char* what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    ASSERT_TRUE(std::isfinite(found[i])) << what << " " << i;
    apart = std::max(apart, std::abs(found[i] - wanted[i]));
  }
  EXPECT_LE(apart, share * largest) << what;
}

void expect_same_pattern(const BlockRows& found, const NodeRows& wanted, Stream& stream, const char* what) {
  EXPECT_EQ(found.row_size, wanted.row_size) << what;
  EXPECT_EQ(found.col_size, wanted.col_size) << what;
  EXPECT_EQ(taken<std::int64_t>(found.start, stream), wanted.start) << what;
  EXPECT_EQ(taken<std::int32_t>(found.column, stream), wanted.column) << what;
}

void expect_same(const BlockRows& found, const NodeRows& wanted, double share, Stream& stream, const char* what) {
  expect_same_pattern(found, wanted, stream, what);
  expect_near(taken<double>(found.value, stream), wanted.value, share, what);
}

BlockRows on_device(const NodeRows& a, Stream& stream) {
  BlockRows out;
  out.row_size = a.row_size, out.col_size = a.col_size;
  out.count = a.count(), out.cols = a.cols->own(), out.blocks = a.blocks();
  out.start = given(a.start, stream), out.column = given(a.column, stream), out.value = given(a.value, stream);
  return out;
}

BlockRows product(const BlockRows& a, const BlockRows& b, Stream& stream) {
  int longest = 0;
  BlockRows out = blocks::product_pattern(a, b, std::numeric_limits<std::int64_t>::max(), longest, stream);
  blocks::multiply_values(a, b, longest, out, stream);
  return out;
}

HostVector<double> product_of_host(const NodeRows& a, const HostVector<float>& x) {
  HostVector<double> y(static_cast<std::size_t>(a.count() * a.row_size), 0.0);
  for (std::int64_t i = 0; i < a.count(); ++i)
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k)
      for (int r = 0; r < a.row_size; ++r)
        for (int c = 0; c < a.col_size; ++c)
          y[at(i * a.row_size + r)] +=
              a.block(k)[r * a.col_size + c] * static_cast<double>(x[at(std::int64_t{a.column[at(k)]} * a.col_size + c)]);
  return y;
}

/// In f16 the product with smooth vectors is as good as in f32, and others are as good as 11 bits are.
void halves_keep_smooth_vectors(const BlockRows& of_device, const NodeRows& a, const HostVector<double>* modes, bool lanes,
                                Stream& stream, const std::string& what) {
  SCOPED_TRACE(what + (lanes ? ", a lane a row" : ", a team a row"));
  const int s = a.row_size;
  const Buffer modes_of_device = modes == nullptr ? Buffer() : given(*modes, stream);
  blocks::HalfProduct halves(of_device, modes == nullptr ? nullptr : &modes_of_device, lanes, 8, stream);
  EXPECT_LT(halves.bytes(), blocks::BlockProduct(of_device, ValueType::f32, true, stream).bytes());
  const auto rows = static_cast<std::size_t>(a.count() * s);
  double of_modes = 0, of_other = 0, largest = 0;
  const auto product = [&](const HostVector<float>& x) {
    const Buffer from = given(x, stream), to(stream.device(), rows * sizeof(float));
    halves.multiply(1, from.data(), 0, to.data(), stream);
    return taken<float>(to, stream);
  };
  for (const double v : a.value) largest = std::max(largest, std::abs(v));
  for (int mode = 0; mode <= s; ++mode) {  // the last one is no mode
    HostVector<float> x(rows);
    for (std::int64_t i = 0; i < a.count(); ++i)
      for (int r = 0; r < s; ++r) {
        const double entry = mode == s          ? std::sin(static_cast<double>(7 * i + 3 * r + 1))
                             : modes == nullptr ? (r == mode ? 1.0 : 0.0)
                                                : (*modes)[at((i * s + r) * s + mode)];
        x[at(i * s + r)] = static_cast<float>(entry);
      }
    double size_of_x = 0;
    for (const float entry : x) size_of_x = std::max(size_of_x, std::abs(static_cast<double>(entry)));
    const HostVector<double> wanted = product_of_host(a, x);
    const HostVector<float> found = product(x);
    double apart = 0;
    for (std::size_t i = 0; i < rows; ++i) apart = std::max(apart, std::abs(static_cast<double>(found[i]) - wanted[i]));
    apart /= largest * size_of_x;
    double& worst = mode == s ? of_other : of_modes;
    worst = std::max(worst, apart);
  }
  EXPECT_LT(of_modes, 2e-5);
  EXPECT_LT(of_other, 1e-2);

  // The smoother's step behind it: as its parts.
  HostVector<float> d(rows), r(rows), x(rows), inverse(rows * static_cast<std::size_t>(s));
  for (std::size_t i = 0; i < rows; ++i) {
    d[i] = static_cast<float>(std::sin(static_cast<double>(i))), r[i] = static_cast<float>(std::cos(static_cast<double>(i)));
    x[i] = static_cast<float>(i % 7);
  }
  for (std::size_t i = 0; i < inverse.size(); ++i) inverse[i] = static_cast<float>(std::sin(static_cast<double>(5 * i))) / 4;
  const Buffer of_d = given(d, stream), of_r = given(r, stream), of_x = given(x, stream),
               of_inverse = given(inverse, stream), of_e(stream.device(), rows * sizeof(float));
  const HostVector<float> product_of_d = product(d);
  halves.multiply(of_d.data(), {of_inverse.data(), of_r.data(), of_x.data(), of_e.data(), 0.5, 0.25, false}, stream);
  const HostVector<float> r_found = taken<float>(of_r, stream), e_found = taken<float>(of_e, stream),
                          x_found = taken<float>(of_x, stream);
  for (std::size_t i = 0; i < rows; ++i) {
    const float left = r[i] - product_of_d[i];
    ASSERT_NEAR(r_found[i], left, 1e-5 * (1 + std::abs(product_of_d[i])));
    double step = 0;
    for (int c = 0; c < s; ++c)
      step += static_cast<double>(inverse[i * static_cast<std::size_t>(s) + static_cast<std::size_t>(c)]) *
              static_cast<double>(
                  r_found[i / static_cast<std::size_t>(s) * static_cast<std::size_t>(s) + static_cast<std::size_t>(c)]);
    const double e = 0.5 * step + 0.25 * static_cast<double>(d[i]);
    ASSERT_NEAR(e_found[i], e, 1e-5 * (1 + std::abs(step)));
    ASSERT_NEAR(x_found[i], static_cast<double>(x[i]) + e, 1e-5 * (8 + std::abs(step)));
  }

  // New values on the same pattern.
  NodeRows twice = a;
  for (double& v : twice.value) v *= 2;
  halves.update(on_device(twice, stream), stream);
  const HostVector<float> doubled = product(d);
  for (std::size_t i = 0; i < rows; ++i) ASSERT_EQ(doubled[i], 2 * product_of_d[i]);
}

void passes_are_those_of_the_host(const Case& c, const std::string& specification, int size, LocalSort sort) {
  SCOPED_TRACE(specification);
  System system(c, specification, 1, sort);
  DistributedMatrix& matrix = system.at.matrix;
  Stream& stream = system.stream();
  NodeRows a = take_nodes(matrix, size, nullptr, stream);

  // The rows, in the order of the source.
  const CsrView csr = matrix.host_rows(stream);
  const HostVector<std::int64_t> rows = matrix.y_rows()->rows_by_place();
  HostVector<std::int64_t> row_ptr{0};
  HostVector<std::int32_t> column, sources;
  HostVector<double> value;
  for (const std::int64_t row : rows) {
    for (std::int64_t k = csr.row_ptr[at(row)]; k < csr.row_ptr[at(row) + 1]; ++k) {
      column.push_back(static_cast<std::int32_t>(csr.col_idx[at(k - csr.row_ptr[0])]));
      value.push_back(csr.values[at(k - csr.row_ptr[0])]);
    }
    row_ptr.push_back(std::ssize(column));
  }
  for (const std::int64_t row : rows_of_columns(matrix)) sources.push_back(static_cast<std::int32_t>(row));
  const Buffer starts = given(row_ptr, stream), columns = given(column, stream), values = given(value, stream),
               source_of = given(sources, stream);
  BlockRows of_device;
  for (const bool as_they_lie : {true, false}) {  // single rows in the order of the source are rows of blocks
    if (as_they_lie && size > 1) continue;
    const blocks::EntryRows entries{csr.rows,
                                    csr.nnz(),
                                    size,
                                    starts.as<std::int64_t>(),
                                    columns.as<std::int32_t>(),
                                    as_they_lie ? nullptr : source_of.as<std::int32_t>()};
    of_device = blocks::take_rows(entries, stream);
    const blocks::EntryPlaces places = blocks::find_places(entries, of_device, stream);
    if (specification.find("poisson") == 0) {
      EXPECT_EQ(places.place.bytes(), 0u) << "single entries in order need no list";
    } else {
      EXPECT_LT(places.place.bytes(), column.size() * sizeof(std::uint32_t)) << "only clamped nodes are listed";
      EXPECT_GT(places.place.bytes(), 0u);
    }
    for (const bool again : {false, true}) {  // new values take the places of old ones
      HostVector<double> scaled = value;
      for (double& v : scaled) v *= again ? 1 : 3;
      blocks::set_values(places, given(scaled, stream), of_device, stream);
    }
    expect_same(of_device, a, 0, stream, "rows");
  }
  EXPECT_NEAR(blocks::asymmetry(blocks::asymmetry_sums(of_device, nullptr, stream)), asymmetry(a), 1e-12);

  // Modes.
  MultigridOptions options;
  const auto source = open_matrix(specification, world()).rows;
  if (size == 3) options.coordinates = coordinates_of(*source, matrix, 3);
  NearNullSpace space = near_null_space(a, options);
  const int m = space.modes.count;
  Buffer modes = blocks::constant_modes(a.count(), size, stream);
  if (size == 3) {
    const Centre centre = centre_of(*options.coordinates, *a.rows);
    const Buffer coordinates = given(options.coordinates->of_own, stream);
    modes = blocks::rigid_body_modes(coordinates, 3, a.count(), size, centre.at.data(), centre.reach, stream);
  }
  blocks::clear_alone(of_device, modes, m, stream);
  expect_near(taken<double>(modes, stream), space.modes.value, 1e-14, "modes");

  // Couplings.
  const Buffer diagonal = blocks::diagonal_places(of_device, stream),
               inverse = blocks::inverse_diagonal(of_device, diagonal, stream);
  const HostVector<double> host_inverse = inverse_diagonal(a);
  expect_near(taken<double>(inverse, stream), host_inverse, 1e-11, "inverse");
  const blocks::Couplings couplings = blocks::coupling_norms(of_device, diagonal, stream);
  const CouplingNorms norms(a);
  expect_near(taken<double>(couplings.square, stream), norms.square, 1e-14, "squares");
  expect_near(taken<double>(couplings.diagonal, stream), norms.diagonal, 1e-14, "diagonal");
  HostVector<char> host_hinges;
  Buffer hinges;
  if (size > 1) {
    host_hinges = find_hinges(a, host_inverse), hinges = blocks::find_hinges(of_device, diagonal, inverse, stream);
    const HostVector<char> found = taken<char>(hinges, stream);
    std::int64_t apart = 0;
    for (std::size_t k = 0; k < found.size(); ++k) apart += found[k] != host_hinges[k] ? 1 : 0;
    EXPECT_LE(apart, a.blocks() / 1000) << "hinges";  // a pivot may be 0 but for rounding
    copy_to_device(hinges.data(), host_hinges.data(), host_hinges.size(), stream);
  }
  const StrongGraph graph = strong_couplings(a, norms, 0.05, host_hinges);
  const blocks::StrongGraph strong =
      blocks::strong_couplings(of_device, couplings, 0.05, size > 1 ? &hinges : nullptr, stream);
  EXPECT_EQ(taken<std::int64_t>(strong.start, stream), graph.start);
  EXPECT_EQ(taken<std::int32_t>(strong.node, stream), graph.node);
  EXPECT_EQ(taken<char>(strong.alone, stream), graph.alone);

  // Aggregates.
  const Aggregates wanted = make_aggregates(graph);
  const blocks::Aggregates aggregates = blocks::make_aggregates(strong, stream);
  EXPECT_EQ(taken<std::int32_t>(aggregates.of_node, stream), wanted.of_node);
  ASSERT_EQ(aggregates.count, wanted.count);
  EXPECT_EQ(aggregates.single, wanted.single);
  EXPECT_EQ(aggregates.taken, a.count() - std::count(wanted.of_node.begin(), wanted.of_node.end(), -1));

  // Prolongation and the next level.
  Modes coarse;
  const NodeRows t = tentative(wanted, space.modes, a.rows, coarse);
  Buffer device_coarse;
  const BlockRows device_t = blocks::tentative(aggregates, modes, size, m, device_coarse, stream);
  expect_same(device_t, t, 1e-9, stream, "T");
  expect_near(taken<double>(device_coarse, stream), coarse.value, 1e-11, "coarse modes");
  const double omega = 0.4;
  const NodeRows p = smoothed(t, a, host_inverse, omega);
  BlockRows device_p = product(of_device, device_t, stream);
  blocks::smooth(device_p, device_t, aggregates.of_node, inverse, omega, stream);
  expect_same(device_p, p, 1e-9, stream, "P");
  Buffer block_of;
  const BlockRows transposed_p = blocks::transposed(device_p, block_of, stream);
  const ByColumn by = by_column(p);
  NodeRows host_transposed = transposed(p, by);
  expect_same(transposed_p, host_transposed, 1e-9, stream, "P transposed");
  BlockRows again = blocks::transposed(device_p, block_of, stream);
  blocks::transpose_values(device_p, block_of, again, stream);
  expect_same(again, host_transposed, 1e-9, stream, "P transposed again");
  Galerkin galerkin(p);
  NodeRows next = galerkin(a, p, WithGhostRows(p, a.cols));
  mend_diagonal(next, t, a);
  BlockRows device_next = product(transposed_p, product(of_device, device_p, stream), stream);
  const Buffer scales = blocks::diagonal_scales(device_t, aggregates, of_device, diagonal, stream);
  blocks::mend_diagonal(device_next, scales, stream);
  expect_same(device_next, next, 1e-10, stream, "the next level");
  // With terms that are added in place, as rows take them that shared memory cannot hold.
  BlockRows in_place = product(transposed_p, product(of_device, device_p, stream), stream);
  blocks::multiply_values(transposed_p, product(of_device, device_p, stream), 1'000'000, in_place, stream);
  blocks::mend_diagonal(in_place, scales, stream);
  EXPECT_EQ(taken<double>(in_place.value, stream), taken<double>(device_next.value, stream));

  for (const bool lanes : {false, true}) {
    if (size > 1) halves_keep_smooth_vectors(of_device, a, nullptr, lanes, stream, "f16");
    if (m > 1) halves_keep_smooth_vectors(device_next, next, &coarse.value, lanes, stream, "f16 of the next level");
  }

  // The inverse of a last level, which may have a few unknowns less than whole tiles.
  if (next.count() * m <= 900)
    expect_near(taken<double>(blocks::dense_inverse(device_next, stream).value, stream),
                dense_inverse(next, Modes{m, 0, {}}).value, 1e-9, "inverse");

  // Bodies.
  const blocks::Bodies bodies = blocks::find_bodies(of_device, couplings, modes, m, stream);
  EXPECT_EQ(bodies.count, 1);
  ASSERT_EQ(bodies.listed.size(), 1u);
  const HostVector<std::int32_t> of_node = taken<std::int32_t>(bodies.of_node, stream);
  std::vector<double> sums(static_cast<std::size_t>(2 * m * m + 1));
  blocks::body_sums(of_device, diagonal, modes, m, bodies, bodies.listed[0], sums.data(), stream);
  std::vector<double> energy(static_cast<std::size_t>(m * m)), square(energy);
  for (std::int64_t i = 0; i < a.count(); ++i) {
    for (int v = 0; v < m; ++v)
      for (int r = 0; r < size; ++r) {
        double force = 0;
        for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k)
          for (int d = 0; d < size; ++d)
            force += a.block(k)[r * size + d] * space.modes.value[at((std::int64_t{a.column[at(k)]} * size + d) * m + v)];
        for (int u = 0; u < m; ++u) {
          const double mine = space.modes.value[at((i * size + r) * m + u)];
          if (of_node[at(i)] < 0) continue;
          energy[at(u * m + v)] += mine * force,
              square[at(u * m + v)] += mine * space.modes.value[at((i * size + r) * m + v)];
        }
      }
  }
  const auto largest = [](const std::vector<double>& of) {
    double most = 0;
    for (const double one : of) most = std::max(most, std::abs(one));
    return most;
  };
  for (int n = 0; n < m * m; ++n) {
    EXPECT_NEAR(sums[at(n)], energy[at(n)], 1e-10 * sums.back() * static_cast<double>(a.count()));
    EXPECT_NEAR(sums[at(m * m + n)], square[at(n)], 1e-11 * largest(square));
  }
  EXPECT_GT(sums.back(), 0);
}

void passes(const Case& c) {
  if (world().size() > 1) GTEST_SKIP() << "the set-up is on the device where one rank has all rows";
  passes_are_those_of_the_host(c, "elasticity:n=11,clamp=0.1", 3, LocalSort::none);
  passes_are_those_of_the_host(c, "elasticity:n=9,inclusions=1e4,clamp=0.1", 3, LocalSort::by_length);
  passes_are_those_of_the_host(c, "poisson7:n=17,inclusions=1e4", 1, LocalSort::none);
  passes_are_those_of_the_host(c, "poisson27:n=15,uniform", 1, LocalSort::none);
}
TEST(GpuMultigridSetup, PassesAreThoseOfTheHost) { on_gpus(passes, kCuda64); }

void random_entries_are_those_of_the_host(const Case& c) {
  const test::TestMatrix here(c, "poisson7:n=7", LocalSort::none), there(kHost64, "poisson7:n=7", LocalSort::none);
  for (const Entries entries : {Entries::signs, Entries::fractions})
    for (const std::int64_t columns : {1, 3}) {
      DistributedVector on_gpu(here.matrix, VectorLayout::rows, c.type, columns),
          on_host(there.matrix, VectorLayout::rows, c.type, columns);
      fill_random(on_gpu, 17, entries, here.context.stream());
      fill_random(on_host, 17, entries, there.context.stream());
      EXPECT_EQ(on_gpu.own(here.context.stream()), on_host.own(there.context.stream()));
      DistributedVector times_on_gpu(on_gpu.map(), c.type, columns), times_on_host(on_host.map(), c.type, columns);
      fill_random(times_on_gpu, 5, Entries::fractions, here.context.stream());
      fill_random(times_on_host, 5, Entries::fractions, there.context.stream());
      fill_random(on_gpu, 17, entries, here.context.stream(), &times_on_gpu);
      fill_random(on_host, 17, entries, there.context.stream(), &times_on_host);
      EXPECT_EQ(on_gpu.own(here.context.stream()), on_host.own(there.context.stream()));
      EXPECT_NE(on_host.own(there.context.stream()), times_on_host.own(there.context.stream()));
    }
}
TEST(GpuMultigridSetup, RandomEntriesAreThoseOfTheHost) { on_gpus(random_entries_are_those_of_the_host, kCuda64); }

/// Long rows take a thread block; longer ones are refused.
void long_rows(const Case& c) {
  Context& context = context_of(c);
  Stream& stream = context.stream();
  const auto square = [&](std::int64_t wide) {  // row 0 and column 0 are full
    NodeRows a;
    a.rows = a.cols = nodes_of_one_rank(wide, context.communicator());
    a.start.clear(), a.start.push_back(0);
    for (std::int64_t i = 0; i < wide; ++i) {
      for (std::int64_t j = 0; j < wide; ++j)
        if (i == 0 || j == 0 || i == j) {
          a.column.push_back(static_cast<std::int32_t>(j));
          a.value.push_back(1.0 / static_cast<double>(1 + i + 2 * j));
        }
      a.start.push_back(std::ssize(a.column));
    }
    return a;
  };
  if (world().size() > 1) GTEST_SKIP();
  const NodeRows a = square(900);
  const BlockRows of_device = on_device(a, stream);
  expect_same(product(of_device, of_device, stream), multiply(a, WithGhostRows(a, a.cols)), 1e-13, stream, "a long row");
  const BlockRows too_wide = on_device(square(13'000), stream);
  int longest = 0;
  EXPECT_THROW(blocks::product_pattern(too_wide, too_wide, 1 << 30, longest, stream), blocks::TooWide);
}
TEST(GpuMultigridSetup, LongRows) { on_gpus(long_rows, kCuda64); }

/// Iterations and levels with the set-up on the device are those with the set-up in host memory.
void solves_as_the_host(const Case& c, std::int64_t columns) {
  struct One {
    const char* specification;
    int size;
  };
  for (const One& one : {One{"elasticity:n=16,uniform,clamp=0.05", 3}, One{"poisson7:n=24", 1},
                         One{"poisson27:n=20,uniform", 1}, One{"elasticity:n=14,inclusions=1e4,clamp=0.1", 3}}) {
    SCOPED_TRACE(one.specification);
    std::int64_t iterations[3];
    MultigridReport reports[3];
    for (const int run : {0, 1, 2}) {  // on the host, on the GPU, and there in f16
      const bool device = run > 0;
      if (run == 2 && (world().size() > 1 || columns > 1)) continue;
      System system(device ? c : kHost64, one.specification, columns);
      SolverOptions options;
      options.columns = columns;
      options.solver = "cg", options.preconditioner = "multigrid", options.rtol = 1e-8, options.max_iterations = 100;
      if (run == 2) options.preconditioning.multigrid.inner = ValueType::f16;
      if (one.size == 3)
        options.preconditioning.multigrid.coordinates =
            coordinates_of(*open_matrix(one.specification, world()).rows, system.at.matrix, 3);
      Solver solver(system.at.matrix, options);
      const SolveResult result = solver.solve(system.b, system.x);
      EXPECT_TRUE(result.converged());
      iterations[run] = result.iterations, reports[run] = *solver.preconditioner().multigrid();
      if (device) {
        EXPECT_TRUE(reports[run].set_up_on_gpu) << reports[run].why_on_host;
      }
    }
    EXPECT_NEAR(static_cast<double>(iterations[1]), static_cast<double>(iterations[0]), 1);
    if (world().size() == 1 && columns == 1) {
      EXPECT_NEAR(static_cast<double>(iterations[2]), static_cast<double>(iterations[1]), 1);
      if (one.size > 1) {
        EXPECT_LT(reports[2].bytes, reports[1].bytes);
      }
    }
    ASSERT_EQ(reports[1].levels.size(), reports[0].levels.size());
    for (std::size_t l = 0; l < reports[0].levels.size(); ++l) {
      // The radius depends on rounding, and on random vectors of all columns. P depends on the radius, and so do the
      // couplings of coarse levels, some of which are about as strong as they must be.
      const auto unknowns = static_cast<double>(reports[0].levels[l].unknowns);
      EXPECT_NEAR(static_cast<double>(reports[1].levels[l].unknowns), unknowns, l <= 1 ? 0 : 0.1 * unknowns);
      EXPECT_EQ(reports[1].levels[l].ranks, reports[0].levels[l].ranks);
      if (l <= 1 && columns == 1) {
        EXPECT_EQ(reports[1].levels[l].nonzeros, reports[0].levels[l].nonzeros);
      }
      EXPECT_NEAR(reports[1].levels[l].radius, reports[0].levels[l].radius, 0.02 * reports[0].levels[l].radius);
    }
  }
}
TEST(GpuMultigridSetup, SolvesAsTheHost) {
  on_gpus([](const Case& c) { solves_as_the_host(c, 1); }, kCuda64);
}
TEST(MultiGpuMultigridSetup, SolvesAsTheHost) {
  on_gpus([](const Case& c) { solves_as_the_host(c, 1); }, kCuda64);
}
TEST(GpuMultigridSetup, SolvesSeveralAsTheHost) {
  on_gpus([](const Case& c) { solves_as_the_host(c, 3); }, kCuda64);
}

/// What a product uploads is kept for these rows alone, until it is forgotten.
TEST(GpuMultigridSetup, KeepsAnUpload) {
  on_gpus(
      [](const Case& c) {
        const MatrixSource source = open_matrix("poisson27:n=12", world());
        const LoadOptions load = test::options_for(c, LocalSort::none);
        DistributedMatrix a(source, context_of(c), load), b(source, context_of(c), load);
        const KeptUpload upload(a.host_pattern());
        const auto of_b = b.product();
        EXPECT_EQ(KeptUpload::find(b.host_pattern()), nullptr);
        EXPECT_EQ(KeptUpload::find(a.host_pattern()), nullptr);
        const auto of_a = a.product();
        EXPECT_NE(KeptUpload::find(a.host_pattern()), nullptr);
        {
          const KeptUpload inner(b.host_pattern());
          EXPECT_EQ(KeptUpload::find(a.host_pattern()), nullptr);
        }
        EXPECT_NE(KeptUpload::find(a.host_pattern()), nullptr);
        KeptUpload::forget();
        EXPECT_EQ(KeptUpload::find(a.host_pattern()), nullptr);
      },
      kCuda64);
}

/// Columns and values of the stored product, or what it uploaded, make the same levels as those in host memory, before and
/// after new values.
void rows_come_from_the_stored_product(const Case& c) {
  for (const char* const specification : {"elasticity:n=14,inclusions=1e4,clamp=0.1", "poisson7:n=24", "poisson27:n=20"})
    for (const LocalSort sort : {LocalSort::none, LocalSort::by_length}) {
      SCOPED_TRACE(std::string(specification) + (sort == LocalSort::none ? "" : ", sorted"));
      LoadOptions load = test::options_for(c, sort);
      const MatrixSource source = open_matrix(specification, world());
      DistributedMatrix fixed(source, context_of(c), load), fresh(source, context_of(c), load);
      load.values = Values::updatable;
      DistributedMatrix matrix(source, context_of(c), load);
      SolverOptions options;
      options.solver = "cg", options.preconditioner = "multigrid";
      options.preconditioning.multigrid.refresh = "smooth";
      const auto product = matrix.product(), of_fixed = fixed.product();  // its upload is gone
      EXPECT_TRUE(matrix.can_write_values());
      EXPECT_FALSE(fixed.can_write_values());
      const Solver of_host(fixed, options), of_upload(fresh, options);
      Solver solver(matrix, options);
      const auto expect_alike = [&](const Solver& wanted, std::size_t levels) {
        const MultigridReport &a = *solver.preconditioner().multigrid(), &b = *wanted.preconditioner().multigrid();
        EXPECT_TRUE(a.set_up_on_gpu) << a.why_on_host;
        ASSERT_GE(std::min(a.levels.size(), b.levels.size()), levels);
        for (std::size_t l = 0; l < levels; ++l) {
          EXPECT_EQ(a.levels[l].nonzeros, b.levels[l].nonzeros);
          EXPECT_NEAR(a.levels[l].radius, b.levels[l].radius, 1e-4 * b.levels[l].radius);
        }
      };
      const std::size_t all = of_host.preconditioner().multigrid()->levels.size();
      expect_alike(of_host, all), expect_alike(of_upload, all);
      std::vector<double> values, stiffer;
      for (const std::int64_t id : matrix.y_rows()->ids_by_place()) {
        const auto row = source.rows->read_rows(id, id + 1);
        for (std::size_t k = 0; k < row.values.size(); ++k) {
          values.push_back(row.values[k]);
          stiffer.push_back(row.values[k] * (row.col_idx[k] == id ? 1 + std::abs(test::x_at(id, 0)) : 1));
        }
      }
      const double radius = of_host.preconditioner().multigrid()->levels[0].radius;
      matrix.update_values(stiffer, context_of(c).stream());
      solver.refresh();
      EXPECT_GT(std::abs(solver.preconditioner().multigrid()->levels[0].radius - radius), 0.01 * radius);
      expect_alike(Solver(matrix, options), 1);  // whose aggregates may be others
      matrix.update_values(values, context_of(c).stream());
      solver.refresh();
      expect_alike(of_host, all);
    }
}
TEST(GpuMultigridSetup, RowsComeFromTheStoredProduct) { on_gpus(rows_come_from_the_stored_product, kCuda64); }
TEST(MultiGpuMultigridSetup, RowsComeFromTheStoredProduct) { on_gpus(rows_come_from_the_stored_product, kCuda64); }

}  // namespace
}  // namespace shardmat
