// Adds the terms of sparse rows.
//
// Threads: one thread at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/base/host_vector.h"
#include "kernels/host/lanes.h"
#include "runtime/solvers/multigrid/nodes.h"

namespace shardmat::multigrid {

/// Rows in the making, one after the other: a sparse accumulator (F. Gustavson, Two fast algorithms for sparse matrices, ACM
/// Trans. Math. Softw. 4, 1978). kEntries: of a block; 0: known at run time. Blocks are added up in the order of their first
/// terms, so that a row stays in the nearest cache; single values where the mark of their column lies.
template <int kEntries>
class Accumulator {
  static constexpr bool kSingle = kEntries == 1;
  struct BlockMark {
    std::int32_t row, place;  ///< rows of a rank have 32-bit numbers
  };
  struct SingleMark {
    double sum;
    std::int32_t row;
  };
  using Mark = std::conditional_t<kSingle, SingleMark, BlockMark>;

 public:
  Accumulator(std::int64_t columns, std::int64_t entries)
      : entries_(kEntries > 0 ? kEntries : entries), mark_(at(columns)), is_there_(at(columns / 64 + 1), 0) {
    for (Mark& mark : mark_) mark.row = -1;
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
      if constexpr (kSingle) {  // without a branch: which terms are the first ones cannot be foreseen
        const bool is_new = mark.row != row_;
        column_[count_] = column, count_ += is_new ? 1 : 0;
        mark.row = row_, mark.sum = is_new ? 0 : mark.sum;
        return &mark.sum;
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

  /// Copies the last row, of `count` columns, in the order of their first terms.
  SHARDMAT_INLINE void copy_to(std::int32_t* columns, double* values, std::int32_t count) const {
    std::copy_n(column_.data(), count, columns);
    if constexpr (kSingle) {
      for (std::int32_t n = 0; n < count; ++n) values[n] = *sums_of(columns[n]);
    } else {
      std::copy_n(sum_.data(), count * entries_, values);
    }
  }
  /// Appends the last row, of `count` columns, in ascending order.
  void append_to(HostVector<std::int32_t>& columns, HostVector<double>& values, std::int64_t count) {
    const auto begin = column_.begin(), end = begin + count;
    const auto put = [&](std::int32_t column) {
      const double* const sums = sums_of(column);
      columns.push_back(column);
      values.insert(values.end(), sums, sums + entries_);
    };
    if (std::is_sorted(begin, end)) {
      std::for_each(begin, end, put);
      return;
    }
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
  SHARDMAT_INLINE const double* sums_of(std::int32_t column) const {
    if constexpr (kSingle) return &mark_[at(column)].sum;
    else return sum_.data() + mark_[at(column)].place * entries_;
  }
  [[gnu::noinline]] void make_room() {
    column_.resize(std::max<std::size_t>(64, 2 * column_.size()));
    if constexpr (!kSingle) sum_.resize(column_.size() * at(entries_));
  }

  std::int64_t entries_;
  std::int32_t row_ = -1;
  HostVector<Mark> mark_;            ///< of a column: the row that had it last, and where it stands there
  HostVector<std::int32_t> column_;  ///< of this row, in the order of the first terms
  HostVector<double> sum_;
  HostVector<std::uint64_t> is_there_;  ///< a bit for each column; 0 between rows
};

}  // namespace shardmat::multigrid
