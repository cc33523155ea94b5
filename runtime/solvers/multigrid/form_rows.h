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

/// About how many entries the rows begin … end - 1 have, from a sample of them.
template <class Each>
std::int64_t foretold_entries(std::int64_t begin, std::int64_t end, std::int64_t columns, Each& each) {
  constexpr std::int64_t kSamples = 100;
  const std::int64_t samples = std::min(end - begin, kSamples);
  std::vector<std::int64_t> last_row(at(columns), -1);
  std::int64_t entries = 0;
  for (std::int64_t n = 0; n < samples; ++n) {
    const std::int64_t i = begin + n * (end - begin) / samples;
    each.each_column(i, [&](std::int32_t column, auto...) {
      if (std::exchange(last_row[at(column)], i) != i) ++entries;
    });
  }
  return samples > 0 ? entries * (end - begin) / samples : 0;
}

/// Makes rows with terms of `work` values together. each_of(begin, end) makes an object for a thread that makes these rows
/// in ascending order: each(i, use) calls use(column, what …) for every term of row i, columns are below `columns`, and
/// add(block, what …) adds the term. Both are marked SHARDMAT_INLINE_LAMBDA or SHARDMAT_INLINE: they are compiled for each
/// instruction set. each.each_column(i, use) calls use(column) at least once for each column of any row.
template <int kEntries = 0, class EachOf, class Add>
void form_rows_by_range(std::int64_t rows, std::int64_t columns, std::int64_t work, const EachOf& each_of, const Add& add,
                        NodeRows& out) {
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
  parallel_ranges(rows, grain_of(rows, work), [&](std::int64_t begin, std::int64_t end) {
    Piece piece{begin, {}, {}};
    Accumulator<kEntries> accumulator(columns, entries);
    auto each = each_of(begin, end);
    // Growing would touch three times the memory.
    const std::int64_t room = foretold_entries(begin, end, columns, each) * 9 / 8 + 64;
    piece.column.reserve(at(room)), piece.value.reserve(at(room * entries));
    run_compiled_for(best_isa(), [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
      for (std::int64_t i = begin; i < end; ++i) {
        typename Accumulator<kEntries>::Row row(accumulator);
        each(i, [&](std::int32_t column, auto... what) SHARDMAT_INLINE_LAMBDA { add(row.block(column), what...); });
        accumulator.append_to(piece.column, piece.value, row.count());
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

/// An `each` that takes rows in any order.
template <class Each>
struct InAnyOrder {
  const Each& each;
  template <class Use>
  SHARDMAT_INLINE void operator()(std::int64_t i, const Use& use) const {
    each(i, use);
  }
  template <class Use>
  void each_column(std::int64_t i, const Use& use) const {
    each(i, use);
  }
};

/// As above for an `each` that takes rows in any order.
template <int kEntries = 0, class Each, class Add>
void form_rows(std::int64_t rows, std::int64_t columns, std::int64_t work, const Each& each, const Add& add, NodeRows& out) {
  const auto each_of = [&each](std::int64_t, std::int64_t) { return InAnyOrder<Each>{each}; };
  form_rows_by_range<kEntries>(rows, columns, work, each_of, add, out);
}

/// Sets the values of such rows anew.
template <class EachOf, class Add>
void form_values(std::int64_t columns, std::int64_t work, const EachOf& each_of, const Add& add, NodeRows& out) {
  const std::int64_t entries = out.block_entries();
  out.value.resize(at(out.start.back() * entries));
  parallel_ranges(out.count(), grain_of(out.count(), work), [&](std::int64_t begin, std::int64_t end) {
    auto each = each_of(begin, end);
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
