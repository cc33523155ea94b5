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

/// Calls form(entries of a block of the product, if known, add): add() adds such a term.
template <class Form>
void with_product_of(int s, int m, const Form& form) {
  with_sizes(s, m, [&]<int kS, int kM>(Known<kS>, Known<kM>) {
    form(Known<kS * kM>(), [s, m](double* sum, const double* x, const double* y)
                               SHARDMAT_INLINE_LAMBDA { add_product<kS, kM>(x, y, sum, s, m); });
  });
}

/// Terms of row g of Pᵀ·AP.
auto terms_of(const NodeRows& p, const ByColumn& columns, const NodeRows& ap) {
  return [&](std::int64_t g, auto use) SHARDMAT_INLINE_LAMBDA {
    for (std::int64_t t = columns.start[at(g)]; t < columns.start[at(g) + 1]; ++t) {
      const std::int64_t i = columns.row[at(t)];
      const double* const of_p = p.block(columns.block[at(t)]);
      for (std::int64_t l = ap.start[at(i)]; l < ap.start[at(i) + 1]; ++l) use(ap.column[at(l)], of_p, ap.block(l));
    }
  };
}

template <class Form>
void with_transposed_product_of(int s, int m, const Form& form) {
  with_sizes(s, m, [&]<int kS, int kM>(Known<kS>, Known<kM>) {
    form(Known<kM * kM>(), [s, m](double* sum, const double* x, const double* y)
                               SHARDMAT_INLINE_LAMBDA { add_transposed_product<kS, kM>(x, y, sum, s, m); });
  });
}

NodeRows product_of(const NodeRows& a, const WithGhostRows& b, Columns order) {
  NodeRows out{a.row_size, b.col_size(), a.rows, b.cols(), {}, {}, {}};
  with_product_of(a.row_size, b.col_size(), [&]<int kEntries>(Known<kEntries>, const auto& add) {
    form_rows<kEntries>(a.count(), b.cols()->local_count(), terms_of(a, b), add, out, order);
  });
  return out;
}

}  // namespace

NodeRows multiply(const NodeRows& a, const WithGhostRows& b) { return product_of(a, b, Columns::ascending); }

Galerkin::Galerkin(const NodeRows& a, const NodeRows& p, const WithGhostRows& all_p, NodeRows& product)
    : columns_(by_column(p)), ap_(product_of(a, all_p, Columns::as_they_come)) {
  NodeRows c{p.col_size, p.col_size, p.cols, ap_.cols, {}, {}, {}};
  with_transposed_product_of(p.row_size, p.col_size, [&]<int kEntries>(Known<kEntries>, const auto& add) {
    form_rows<kEntries>(p.cols->local_count(), ap_.cols->local_count(), terms_of(p, columns_, ap_), add, c);
  });
  ap_.value = {};
  c_ = NodeRows{c.row_size, c.col_size, c.rows, c.cols, c.start, c.column, {}};
  product = brought_home(std::move(c), true);
}

NodeRows Galerkin::operator()(const NodeRows& a, const NodeRows& p, const WithGhostRows& all_p) {
  with_product_of(a.row_size, p.col_size,
                  [&](auto, const auto& add) { form_values(all_p.cols()->local_count(), terms_of(a, all_p), add, ap_); });
  NodeRows c = c_;
  with_transposed_product_of(p.row_size, p.col_size, [&](auto, const auto& add) {
    form_values(ap_.cols->local_count(), terms_of(p, columns_, ap_), add, c);
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
