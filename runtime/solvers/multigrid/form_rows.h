// Sparse rows whose entries are sums of terms: pattern and values in one pass, or values alone. Parallel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/host/lanes.h"
#include "runtime/solvers/multigrid/accumulator.h"
#include "runtime/solvers/multigrid/node_rows.h"

namespace shardmat::multigrid {

/// Makes rows: `each(i, use)` calls use(column, what …) for every term of row i, columns are below `columns`, and
/// add(block, what …) adds the term. Both are marked SHARDMAT_INLINE_LAMBDA: they are compiled for each instruction set.
template <int kEntries = 0, class Each, class Add>
void form_rows(std::int64_t rows, std::int64_t columns, const Each& each, const Add& add, NodeRows& out,
               Columns order = Columns::ascending) {
  constexpr std::int64_t kSamples = 100;
  struct Piece {
    std::int64_t first_row;
    HostVector<std::int32_t> column;
    HostVector<double> value;
  };
  const std::int64_t entries = out.block_entries();
  std::vector<Piece> pieces;
  std::mutex mutex;
  out.start.resize(at(rows + 1));
  out.start[0] = 0;
  parallel_ranges(rows, kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    Piece piece{begin, {}, {}};
    Accumulator<kEntries> accumulator(columns, entries);
    // First a sample of the rows, for the room that they foretell: growing in steps touches three times the memory.
    const std::int64_t samples = std::min(end - begin, kSamples), step = (end - begin) / std::max<std::int64_t>(samples, 1);
    std::int64_t room = 0;
    run_compiled_for(best_isa(), [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
      for (std::int64_t n = -samples; n < end - begin; ++n) {
        const std::int64_t i = begin + (n < 0 ? (n + samples) * step : n);
        typename Accumulator<kEntries>::Row row(accumulator);
        each(i, [&](std::int32_t column, auto... what) SHARDMAT_INLINE_LAMBDA { add(row.block(column), what...); });
        if (n < 0) {
          room += row.count() * step * 9 / 8 + 1;
          continue;
        }
        if (n == 0) piece.column.reserve(at(room)), piece.value.reserve(at(room * entries));
        accumulator.append_to(piece.column, piece.value, row.count(), order);
        out.start[at(i) + 1] = row.count();
      }
    });
    const std::lock_guard lock(mutex);
    pieces.push_back(std::move(piece));
  });
  std::partial_sum(out.start.begin(), out.start.end(), out.start.begin());
  if (pieces.size() == 1) {
    out.column = std::move(pieces[0].column), out.value = std::move(pieces[0].value);
    return;
  }
  out.column.resize(at(out.start.back())), out.value.resize(at(out.start.back() * entries));
  parallel_tasks(std::ssize(pieces), [&](std::int64_t p) {
    const Piece& piece = pieces[at(p)];
    std::copy(piece.column.begin(), piece.column.end(), out.column.begin() + out.start[at(piece.first_row)]);
    std::copy(piece.value.begin(), piece.value.end(), out.value.begin() + out.start[at(piece.first_row)] * entries);
  });
}

/// Sets the values of such rows anew.
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
        each(i, [&](std::int32_t column, auto... what)
                    SHARDMAT_INLINE_LAMBDA { add(out.value.data() + place[at(column)] * entries, what...); });
      }
    });
  });
}

}  // namespace shardmat::multigrid
