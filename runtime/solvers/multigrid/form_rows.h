// Sparse rows whose entries are sums of terms: first the pattern, then the values. Parallel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/host/lanes.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// How the columns of a row lie.
enum class Columns {
  ascending,
  as_they_come,  ///< in the order of their first terms: for what is only summed over
};

/// Sets start and column of `out`: `each(i, use)` calls use(column, …) for every term of row i; columns are below `columns`.
template <class Each>
void form_pattern(std::int64_t rows, std::int64_t columns, const Each& each, NodeRows& out,
                  Columns order = Columns::ascending) {
  struct Piece {
    std::int64_t first_row;
    HostVector<std::int32_t> column;
  };
  std::vector<Piece> pieces;
  std::mutex mutex;
  out.start.resize(at(rows + 1));
  out.start[0] = 0;
  parallel_ranges(rows, kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    Piece piece{begin, {}};
    std::vector<std::int32_t> seen(at(columns), -1);  // rows of a rank have 32-bit numbers
    for (std::int64_t i = begin; i < end; ++i) {
      const auto row = static_cast<std::int32_t>(i);
      const std::int64_t before = std::ssize(piece.column);
      each(i, [&](std::int32_t column, auto...) {
        if (seen[at(column)] != row) seen[at(column)] = row, piece.column.push_back(column);
      });
      if (order == Columns::ascending) std::sort(piece.column.begin() + before, piece.column.end());
      out.start[at(i) + 1] = std::ssize(piece.column) - before;
    }
    const std::lock_guard lock(mutex);
    pieces.push_back(std::move(piece));
  });
  std::partial_sum(out.start.begin(), out.start.end(), out.start.begin());
  out.column.resize(at(out.start.back()));
  parallel_tasks(std::ssize(pieces), [&](std::int64_t p) {
    const Piece& piece = pieces[at(p)];
    std::copy(piece.column.begin(), piece.column.end(), out.column.begin() + out.start[at(piece.first_row)]);
  });
}

/// Sets the values of such rows: `each(i, use)` calls use(column, a, b) for every term, and add(a, b, block) adds it. Both
/// are marked SHARDMAT_INLINE_LAMBDA: they are compiled for each instruction set.
template <class Each, class Add>
void form_values(std::int64_t columns, const Each& each, const Add& add, NodeRows& out) {
  const std::int64_t entries = out.block_entries();
  out.value.resize(at(out.start.back() * entries));
  parallel_ranges(out.count(), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> place(at(columns));
    run_compiled_for(best_isa(), [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
      for (std::int64_t i = begin; i < end; ++i) {
        std::fill_n(out.value.data() + out.start[at(i)] * entries, (out.start[at(i) + 1] - out.start[at(i)]) * entries, 0.0);
        for (std::int64_t k = out.start[at(i)]; k < out.start[at(i) + 1]; ++k) place[at(out.column[at(k)])] = k;
        each(i, [&](std::int32_t column, const double* a, const double* b)
                    SHARDMAT_INLINE_LAMBDA { add(a, b, out.value.data() + place[at(column)] * entries); });
      }
    });
  });
}

}  // namespace shardmat::multigrid
