// A matrix whose entries a test writes down, with its b and x.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "runtime/matrix/own_rows.h"
#include "tests/runtime/solvers/test_system.h"

namespace shardmat::test {

inline constexpr double kPenalty = 1e30;

/// How the rows lie on the ranks, and in which type.
struct Spread {
  ValueType type = ValueType::f64;
  bool first_is_empty = false;  ///< with several ranks, the first one has no rows
  std::int64_t together = 1;    ///< so many rows in a row stay on one rank
  Values values = Values::updatable;
};

/// A matrix that every rank knows whole, of which each gives its share.
struct Own {
  HostCsr whole;
  Context& context;
  std::unique_ptr<DistributedMatrix> matrix;
  std::optional<DistributedVector> b, x;

  Own(HostCsr a, Context& in, std::int64_t columns = 1, const Spread& spread = {}) : whole(std::move(a)), context(in) {
    const int ranks = context.communicator().size(), spared = spread.first_is_empty && ranks > 1 ? 1 : 0,
              place = context.communicator().rank() - spared;
    const RowMapParts share = even_share(whole.rows / spread.together, ranks - spared, std::max(place, 0));
    const std::int64_t first = spread.together * share.starts[static_cast<std::size_t>(std::max(place, 0))],
                       count = place < 0 ? 0 : spread.together * std::ssize(share.ids);
    const ValueType type = spread.type;
    const auto at = static_cast<std::size_t>(first);
    OwnRows rows{{first, count}, whole.cols, {}, {}};
    rows.row_ptr = std::span(whole.row_ptr).subspan(at, static_cast<std::size_t>(count) + 1);
    const HostVector<std::int64_t> columns_of(whole.col_idx.begin() + rows.row_ptr.front(),
                                              whole.col_idx.begin() + rows.row_ptr.back());
    rows.columns = columns_of;
    rows.values = whole.values.data() + rows.row_ptr.front();
    MatrixOptions options;
    options.values = spread.values;
    options.type = type;
    matrix = std::make_unique<DistributedMatrix>(take_rows(rows, context, type), context, options);
    b.emplace(*matrix, VectorLayout::rows, type, columns);
    x.emplace(*matrix, VectorLayout::rows, type, columns);
    HostVector<double> values;
    for (const std::int64_t id : b->ids())
      for (std::int64_t j = 0; j < columns; ++j) values.push_back(x_at(id, j) + 0.25);
    to_device(b->view().data, values, type, context.stream());
    x->fill(0, context.stream());
  }

  /// Gives the matrix the values of `a`, which has the same pattern.
  void update(HostCsr a) {
    whole = std::move(a);
    const std::int64_t first = matrix->y_rows()->starts()[static_cast<std::size_t>(context.communicator().rank())];
    const std::int64_t begin = whole.row_ptr[static_cast<std::size_t>(first)],
                       end = whole.row_ptr[static_cast<std::size_t>(first + matrix->local_rows())];
    matrix->update_values(std::span<const double>(whole.values)
                              .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
                          context.stream());
  }

  /// The largest |b − A·x| of a row over the sum of |a|·|x| and |b| there.
  double backward_error() {
    const std::int64_t columns = x->columns();
    HostVector<double> xs = x->gather(context.stream()), bs = b->gather(context.stream());
    xs.resize(static_cast<std::size_t>(whole.rows * columns)), bs.resize(xs.size());
    if (context.communicator().size() > 1) {
      context.communicator().broadcast(std::span<double>(xs), 0);
      context.communicator().broadcast(std::span<double>(bs), 0);
    }
    double worst = 0;
    for (std::int64_t i = 0; i < whole.rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        const auto of = [&](std::int64_t row) { return static_cast<std::size_t>(row * columns + j); };
        double r = bs[of(i)], scale = std::abs(r);
        for (std::int64_t k = whole.row_ptr[static_cast<std::size_t>(i)]; k < whole.row_ptr[static_cast<std::size_t>(i) + 1];
             ++k) {
          const double term = whole.values[static_cast<std::size_t>(k)] * xs[of(whole.col_idx[static_cast<std::size_t>(k)])];
          r -= term, scale += std::abs(term);
          if (std::abs(whole.values[static_cast<std::size_t>(k)]) > kPenalty / 2) r = 0, scale = kPenalty;  // x is b / a
        }
        if (scale > 0) worst = std::max(worst, std::abs(r) / scale);
      }
    return worst;
  }
};

/// Rows as lists of (column, value).
template <class Row>
HostCsr csr_of(std::int64_t n, const Row& row) {
  HostCsr a;
  a.rows = a.cols = n;
  a.row_ptr.assign(1, 0);
  for (std::int64_t i = 0; i < n; ++i) {
    row(i, [&](std::int64_t j, double value) {
      if (j < 0 || j >= n) return;
      a.col_idx.push_back(j), a.values.push_back(value);
    });
    a.row_ptr.push_back(std::ssize(a.col_idx));
  }
  return a;
}

}  // namespace shardmat::test
