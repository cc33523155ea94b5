#include "runtime/solvers/multigrid/galerkin.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/solvers/multigrid/blocks.h"
#include "runtime/solvers/multigrid/form_rows.h"
#include "runtime/solvers/multigrid/passing_rows.h"

namespace shardmat::multigrid {
namespace {

/// Terms of row i of A·B, with blocks of kS × kS and kS × kM.
template <int kS, int kM, class Use>
SHARDMAT_INLINE void each_term(const NodeRows& a, const WithGhostRows& b, std::int64_t i, const Use& use) {
  const std::int64_t end = a.start[at(i) + 1], entries = kS > 0 ? kS * kS : a.block_entries();
  const std::int32_t* const of_a = a.column.data();
  const double* value = a.value.data() + a.start[at(i)] * entries;
  for (std::int64_t k = a.start[at(i)]; k < end; ++k, value += entries)
    b.each_block<kS * kM>(
        of_a[k], [&](std::int32_t column, const double* block) SHARDMAT_INLINE_LAMBDA { use(column, value, block); });
}

/// Values in the terms of A·B, if each block of A meets a row of mean length.
std::int64_t work_of(const NodeRows& a, const WithGhostRows& b) {
  constexpr std::int64_t kWorkOfATerm = 4;  // beside its values
  return a.blocks() * (a.block_entries() + kWorkOfATerm) * (b.blocks() / std::max<std::int64_t>(b.count(), 1) + 1);
}

/// Terms of rows of Pᵀ·A·P, for a thread: rows of A·P are made when the first column of P needs them, and forgotten behind
/// the last one. So the thread holds few of them, and those in its caches, if near rows have near numbers.
template <int kS, int kM>
class TripleProduct {
 public:
  /// For the rows begin … end - 1.
  TripleProduct(const NodeRows& a, const NodeRows& p, const ByColumn& columns, const WithGhostRows& all_p,
                std::int64_t begin, std::int64_t end)
      : a_(a),
        p_(p),
        columns_(columns),
        all_p_(all_p),
        begin_(begin),
        end_(end),
        ap_(p.count(), all_p.cols()->local_count(), p.block_entries()) {}

  template <class Use>
  SHARDMAT_INLINE void operator()(std::int64_t g, const Use& use) {
    const std::int64_t end = columns_.start[at(g) + 1], entries = kS > 0 ? kS * kM : p_.block_entries();
    for (std::int64_t t = columns_.start[at(g)]; t < end; ++t) {
      const std::int64_t i = columns_.row[at(t)], k = columns_.block[at(t)];
      const double* const of_p = p_.value.data() + k * entries;
      const bool is_first = k == p_.start[at(i)] || p_.column[at(k - 1)] < begin_,
                 is_last = k + 1 == p_.start[at(i) + 1] || p_.column[at(k + 1)] >= end_;
      if (is_first) make(i);
      const auto row = ap_[i];
      for (std::int32_t l = 0; l < row.count; ++l) use(row.column[l], of_p, row.value + l * entries);
      if (is_last) ap_.forget(i);
    }
  }

  template <class Use>
  void each_column(std::int64_t g, const Use& use) {
    seen_.resize(at(a_.cols->local_count()), -1);
    for (std::int64_t t = columns_.start[at(g)]; t < columns_.start[at(g) + 1]; ++t) {
      const std::int64_t i = columns_.row[at(t)];
      for (std::int64_t k = a_.start[at(i)]; k < a_.start[at(i) + 1]; ++k)
        if (const std::int32_t j = a_.column[at(k)]; std::exchange(seen_[at(j)], g) != g) all_p_.each_block(j, use);
    }
  }

 private:
  SHARDMAT_INLINE void make(std::int64_t i) {
    ap_.make(
        i, [&](const auto& use) SHARDMAT_INLINE_LAMBDA { each_term<kS, kM>(a_, all_p_, i, use); },
        [&](double* sum, const double* x, const double* y)
            SHARDMAT_INLINE_LAMBDA { add_product<kS, kM>(x, y, sum, a_.row_size, p_.col_size); });
  }

  const NodeRows &a_, &p_;
  const ByColumn& columns_;
  const WithGhostRows& all_p_;
  std::int64_t begin_, end_;
  PassingRows<kS * kM> ap_;
  std::vector<std::int64_t> seen_;  ///< the row for which each_column() came to a node last
};

/// Calls form(entries of a block of the product, if known, what makes a TripleProduct, add): add() adds such a term.
template <class Form>
void with_triple_product(const NodeRows& a, const NodeRows& p, const ByColumn& columns, const WithGhostRows& all_p,
                         const Form& form) {
  const int s = p.row_size, m = p.col_size;
  with_sizes(s, m, [&]<int kS, int kM>(Known<kS>, Known<kM>) {
    form(
        Known<kM * kM>(),
        [&](std::int64_t begin, std::int64_t end) { return TripleProduct<kS, kM>(a, p, columns, all_p, begin, end); },
        [s, m](double* sum, const double* x, const double* y)
            SHARDMAT_INLINE_LAMBDA { add_transposed_product<kS, kM>(x, y, sum, s, m); });
  });
}

}  // namespace

NodeRows multiply(const NodeRows& a, const WithGhostRows& b) {
  const int s = a.row_size, m = b.col_size();
  NodeRows out{s, m, a.rows, b.cols(), {}, {}, {}};
  with_sizes(s, m, [&]<int kS, int kM>(Known<kS>, Known<kM>) {
    form_rows<kS * kM>(
        a.count(), b.cols()->local_count(), work_of(a, b),
        [&](std::int64_t i, auto use) SHARDMAT_INLINE_LAMBDA { each_term<kS, kM>(a, b, i, use); },
        [s, m](double* sum, const double* x, const double* y)
            SHARDMAT_INLINE_LAMBDA { add_product<kS, kM>(x, y, sum, s, m); },
        out);
  });
  return out;
}

std::int64_t Galerkin::foretold_blocks(const NodeRows& a, const NodeRows& t, const NodeRows& p,
                                       const WithGhostRows& all_p) const {
  if (t.blocks() == 0) return 0;
  const std::int64_t made = std::int64_t{*std::max_element(t.column.begin(), t.column.end())} + 1,
                     first = p.cols->local(t.cols->global(0));
  TripleProduct<0, 0> terms(a, p, columns_, all_p, first, first + made);
  return foretold_entries(first, first + made, all_p.cols()->local_count(), terms);
}

NodeRows Galerkin::operator()(const NodeRows& a, const NodeRows& p, const WithGhostRows& all_p) {
  NodeRows c{p.col_size, p.col_size, p.cols, all_p.cols(), {}, {}, {}};
  if (c_) c.start = c_->start, c.column = c_->column;
  with_triple_product(a, p, columns_, all_p, [&]<int kEntries>(Known<kEntries>, const auto& terms, const auto& add) {
    if (c_) form_values(c.cols->local_count(), 2 * work_of(a, all_p), terms, add, c);
    else form_rows_by_range<kEntries>(c.rows->local_count(), c.cols->local_count(), 2 * work_of(a, all_p), terms, add, c);
  });
  if (!c_) c_ = NodeRows{c.row_size, c.col_size, c.rows, c.cols, c.start, c.column, {}};
  return brought_home(std::move(c), true);
}

void mend_diagonal(NodeRows& coarse, const NodeRows& t, const NodeRows& a) {
  constexpr double kNoise = 1e-13;
  const int s = t.row_size, m = t.col_size;
  HostVector<double> scale(at(t.cols->local_count() * m), 0.0);  // of the terms that a diagonal entry is a sum of
  for (std::int64_t i = 0; i < t.count(); ++i) {
    const std::int64_t diagonal = t.start[at(i)] < t.start[at(i) + 1] ? a.find(i, static_cast<std::int32_t>(i)) : -1;
    if (diagonal < 0) continue;
    const std::int64_t k = t.start[at(i)];
    for (int r = 0; r < s; ++r)
      for (int c = 0; c < m; ++c)
        scale[at(std::int64_t{t.column[at(k)]} * m + c)] +=
            t.block(k)[r * m + c] * t.block(k)[r * m + c] * std::abs(a.block(diagonal)[r * s + r]);
  }
  t.cols->add_home(scale, m);
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
