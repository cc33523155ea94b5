// Sparse rows whose entries are sums of terms: pattern and values in one pass, or values alone. Parallel.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

/// Rows in the making, one after the other: a sparse accumulator (F. Gustavson, Two fast algorithms for sparse matrices, ACM
/// Trans. Math. Softw. 4, 1978). kEntries: of a block; 0: known at run time.
template <int kEntries>
class Accumulator {
  struct Mark {
    std::int32_t row, place;  ///< rows of a rank have 32-bit numbers
  };

 public:
  Accumulator(std::int64_t columns, std::int64_t entries)
      : entries_(kEntries > 0 ? kEntries : entries), mark_(at(columns)), is_there_(at(columns / 64 + 1), 0) {
    std::fill(mark_.begin(), mark_.end(), Mark{-1, 0});
    make_room();
  }
  /// A row. It holds copies of what the compiler would otherwise read from memory for each term.
  class Row {
   public:
    SHARDMAT_INLINE explicit Row(Accumulator& of) : of_(&of), row_(++of.row_), mark_(of.mark_.data()) { take_room(); }
    SHARDMAT_INLINE std::int32_t count() const { return count_; }

    /// The sums of a column: 0 at first.
    SHARDMAT_INLINE double* block(std::int32_t column) {
      if (count_ == room_) of_->make_room(), take_room();
      Mark& mark = mark_[column];
      if constexpr (kEntries == 1) {  // without a branch: which terms are the first ones cannot be foreseen
        const std::int32_t is_new = mark.row != row_ ? 1 : 0, old = is_new - 1, place = (count_ & ~old) | (mark.place & old);
        mark = {row_, place}, column_[place] = column;
        std::uint64_t bits;
        std::memcpy(&bits, sum_ + place, sizeof bits);
        bits &= static_cast<std::uint64_t>(std::int64_t{old});
        std::memcpy(sum_ + place, &bits, sizeof bits);
        count_ += is_new;
        return sum_ + place;
      } else {
        if (mark.row != row_) {
          mark = {row_, count_}, column_[count_] = column;
          std::fill_n(sum_ + count_ * of_->entries_, of_->entries_, 0.0);
          ++count_;
        }
        return sum_ + mark.place * of_->entries_;
      }
    }

   private:
    SHARDMAT_INLINE void take_room() {
      column_ = of_->column_.data(), sum_ = of_->sum_.data(), room_ = static_cast<std::int32_t>(of_->column_.size());
    }
    Accumulator* of_;
    std::int32_t row_, count_ = 0, room_ = 0;
    Mark* mark_;
    std::int32_t* column_ = nullptr;
    double* sum_ = nullptr;
  };

  /// Appends the last row, of `count` columns.
  void append_to(HostVector<std::int32_t>& columns, HostVector<double>& values, std::int64_t count, Columns order) {
    const auto begin = column_.begin(), end = begin + count;
    if (order == Columns::as_they_come || std::is_sorted(begin, end)) {
      columns.insert(columns.end(), begin, end);
      values.insert(values.end(), sum_.begin(), sum_.begin() + count * entries_);
      return;
    }
    const auto put = [&](std::int32_t column) {
      const double* const sums = sum_.data() + mark_[at(column)].place * entries_;
      columns.push_back(column);
      values.insert(values.end(), sums, sums + entries_);
    };
    const auto [least, most] = std::minmax_element(begin, end);
    const std::int32_t first = *least / 64, last = *most / 64;
    if (last - first > 8 * count) {
      std::sort(begin, end);
      std::for_each(begin, end, put);
      return;
    }
    for (auto column = begin; column != end; ++column) is_there_[at(*column / 64)] |= std::uint64_t{1} << *column % 64;
    for (std::int32_t word = first; word <= last; ++word)
      for (std::uint64_t& bits = is_there_[at(word)]; bits != 0; bits &= bits - 1) put(word * 64 + std::countr_zero(bits));
  }

 private:
  [[gnu::noinline]] void make_room() {
    column_.resize(std::max<std::size_t>(64, 2 * column_.size()));
    sum_.resize(column_.size() * at(entries_));
  }

  std::int64_t entries_;
  std::int32_t row_ = -1;
  HostVector<Mark> mark_;            ///< of a column: where it stands in the row that had it last
  HostVector<std::int32_t> column_;  ///< of this row, in the order of the first terms
  HostVector<double> sum_;
  HostVector<std::uint64_t> is_there_;  ///< a bit for each column; 0 between rows
};

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
