#include "runtime/solvers/multigrid/galerkin.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/solvers/multigrid/blocks.h"
#include "runtime/solvers/multigrid/form_rows.h"

namespace shardmat::multigrid {
namespace {

/// Terms of row i of A·B.
auto terms_of(const NodeRows& a, const WithGhostRows& b) {
  return [&](std::int64_t i, auto use) SHARDMAT_INLINE_LAMBDA {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k)
      b.each_block(a.column[at(k)],
                   [&](std::int32_t column, const double* block) SHARDMAT_INLINE_LAMBDA { use(column, a.block(k), block); });
  };
}

NodeRows pattern_of_product(const NodeRows& a, const WithGhostRows& b, Columns order) {
  NodeRows out{a.row_size, b.col_size(), a.rows, b.cols(), {}, {}, {}};
  form_pattern(a.count(), b.cols()->local_count(), terms_of(a, b), out, order);
  return out;
}

}  // namespace

void multiply_values(const NodeRows& a, const WithGhostRows& b, NodeRows& product) {
  with_sizes(a.row_size, b.col_size(), [&]<int kS, int kM>(Known<kS>, Known<kM>) {
    const int s = a.row_size, m = b.col_size();
    form_values(
        b.cols()->local_count(), terms_of(a, b),
        [s, m](const double* x, const double* y, double* sum)
            SHARDMAT_INLINE_LAMBDA { add_product<kS, kM>(x, y, sum, s, m); },
        product);
  });
}

NodeRows multiply(const NodeRows& a, const WithGhostRows& b) {
  NodeRows product = pattern_of_product(a, b, Columns::ascending);
  multiply_values(a, b, product);
  return product;
}

Galerkin::Galerkin(const NodeRows& a, const NodeRows& p, const WithGhostRows& all_p) : columns_(by_column(p)) {
  ap_ = pattern_of_product(a, all_p, Columns::as_they_come);
  c_ = NodeRows{p.col_size, p.col_size, p.cols, ap_.cols, {}, {}, {}};
  const auto each = [&](std::int64_t g, auto use) {
    for (std::int64_t t = columns_.start[at(g)]; t < columns_.start[at(g) + 1]; ++t) {
      const std::int64_t i = columns_.row[at(t)];
      for (std::int64_t l = ap_.start[at(i)]; l < ap_.start[at(i) + 1]; ++l) use(ap_.column[at(l)]);
    }
  };
  form_pattern(p.cols->local_count(), ap_.cols->local_count(), each, c_);
}

NodeRows Galerkin::operator()(const NodeRows& a, const NodeRows& p, const WithGhostRows& all_p) {
  multiply_values(a, all_p, ap_);
  const auto each = [&](std::int64_t g, auto use) SHARDMAT_INLINE_LAMBDA {
    for (std::int64_t t = columns_.start[at(g)]; t < columns_.start[at(g) + 1]; ++t) {
      const std::int64_t i = columns_.row[at(t)];
      const double* const of_p = p.block(columns_.block[at(t)]);
      for (std::int64_t l = ap_.start[at(i)]; l < ap_.start[at(i) + 1]; ++l) use(ap_.column[at(l)], of_p, ap_.block(l));
    }
  };
  NodeRows c = c_;
  with_sizes(p.row_size, p.col_size, [&]<int kS, int kM>(Known<kS>, Known<kM>) {
    const int s = p.row_size, m = p.col_size;
    form_values(
        ap_.cols->local_count(), each,
        [s, m](const double* x, const double* y, double* sum)
            SHARDMAT_INLINE_LAMBDA { add_transposed_product<kS, kM>(x, y, sum, s, m); },
        c);
  });
  ap_.value = {};
  return brought_home(std::move(c), true);
}

void mend_diagonal(NodeRows& coarse, const NodeRows& t, const NodeRows& a) {
  constexpr double kNoise = 1e-13;
  const int s = t.row_size, m = t.col_size;
  HostVector<double> scale(at(coarse.count() * m), 0.0);  // of the terms that a diagonal entry is a sum of
  for (std::int64_t i = 0; i < t.count(); ++i) {
    const std::int64_t diagonal = t.start[at(i)] < t.start[at(i) + 1] ? a.find(i, static_cast<std::int32_t>(i)) : -1;
    if (diagonal < 0) continue;
    const std::int64_t k = t.start[at(i)];
    for (int r = 0; r < s; ++r)
      for (int c = 0; c < m; ++c)
        scale[at(std::int64_t{t.column[at(k)]} * m + c)] +=
            t.block(k)[r * m + c] * t.block(k)[r * m + c] * std::abs(a.block(diagonal)[r * s + r]);
  }
  for (std::int64_t i = 0; i < coarse.count(); ++i) {
    const std::int64_t k = coarse.find(i, static_cast<std::int32_t>(i));
    if (k < 0) continue;
    double* const d = coarse.block(k);
    double trace = 0;
    for (int r = 0; r < m; ++r) {
      if (std::abs(d[r * m + r]) > kNoise * scale[at(i * m + r)]) {
        trace += d[r * m + r];
        continue;
      }
      for (int c = 0; c < m; ++c) d[r * m + c] = d[c * m + r] = 0;
    }
    for (int r = 0; r < m; ++r)
      if (d[r * m + r] == 0) d[r * m + r] = trace > 0 ? trace / m : 1;
  }
}

}  // namespace shardmat::multigrid
