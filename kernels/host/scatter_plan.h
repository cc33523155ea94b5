// A transposed product on host threads that walks a format as its product does, row by row, and adds each row times its
// entry of x to the columns. It takes no map of the matrix, but memory for the windows (column_windows.h).
//
// Order of summation: a column is summed over the rows of each range in the order in which the format has them, then over
// the ranges. Ranges depend on the pattern and the number of threads. With one range, sums begin with beta·y.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/base/isa.h"
#include "kernels/base/memory_limits.h"
#include "kernels/host/column_windows.h"
#include "kernels/host/lanes.h"
#include "kernels/transpose_plan.h"

namespace shardmat {

/// X as a kernel reads it, and where it adds: entry (i, j) of X is x[i·ldx + j], and of Y y[i·ldy + j].
template <class T>
struct Scatter {
  T alpha;
  const T* x;
  std::int64_t ldx;
  T* y;
  std::int64_t ldy;

  /// alpha times columns first … first + N - 1 of row i of X.
  template <int N>
  SHARDMAT_INLINE Lanes<T, N> of_x(std::int64_t i, std::int64_t first) const {
    return alpha * load<N>(x + i * ldx + first);
  }
  /// Adds value · of_x to row `column` of Y, columns first …
  template <class Set, int N>
  SHARDMAT_INLINE void add(std::int64_t column, std::int64_t first, T value, const Lanes<T, N>& of_x) const {
    T* to = y + column * ldy + first;
    Lanes<T, N> sum = load<N>(to);
    add_product<Set>(sum, of_x, value);
    store(to, sum);
  }
};

/// Walk: a type with `const char* name`, and
///   template <class Set, class T> void one(const S&, begin, end, const Scatter<T>&)  for one right-hand side,
///   template <class Set, class T> void several(const S&, begin, end, const Scatter<T>&, columns).
template <class S, class Walk>
class ScatterPlan final : public TransposePlan {
 public:
  ScatterPlan(std::shared_ptr<const S> a, const TransposeShape& shape, std::vector<WindowedRange> ranges)
      : TransposePlan(a, shape), a_(std::move(a)), ranges_(std::move(ranges)) {
    if (is_direct()) return;
    const std::int64_t entries = ranges_.back().place + ranges_.back().columns.count();
    const std::int64_t bytes = entries * shape.columns * static_cast<std::int64_t>(size_of(a_->type));
    require_host_memory(bytes, "the sums of the threads of a transposed product");
    windows_ = Buffer(Device{}, static_cast<std::size_t>(bytes));
  }

  void multiply(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
                Stream&) const override {
    dispatch(a_->type, [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      run(Scatter<T>{static_cast<T>(alpha), static_cast<const T*>(x), ldx, static_cast<T*>(y), ldy}, static_cast<T>(beta));
    });
  }
  std::int64_t extra_bytes() const override { return static_cast<std::int64_t>(windows_.bytes()); }
  std::string_view name() const override { return Walk::name; }

 private:
  /// One range adds to Y itself, unless the zeros of padding lie beyond Y.
  bool is_direct() const { return ranges_.size() == 1 && ranges_[0].columns.last <= shape().entries; }

  template <class T>
  void run(const Scatter<T>& to, T beta) const {
    const std::int64_t columns = shape().columns;
    if (is_direct()) {
      start(to, beta, 0, shape().entries);
      return walk(ranges_[0], to);
    }
    T* const windows = windows_.as<T>();
    parallel_tasks(std::ssize(ranges_), [&](std::int64_t r) {
      const WindowedRange& range = ranges_[static_cast<std::size_t>(r)];
      T* const window = windows + range.place * columns;
      std::fill(window, window + range.columns.count() * columns, T(0));
      if (range.columns.count() == 0) return;
      Scatter<T> mine = to;
      mine.y = window - range.columns.first * columns, mine.ldy = columns;
      walk(range, mine);
    });
    parallel_ranges(shape().entries, std::max<std::int64_t>(64, (1 << 13) / columns),
                    [&](std::int64_t begin, std::int64_t end) {
                      constexpr std::int64_t kChunk = 512;  // entries of y that stay in a cache
                      for (std::int64_t first = begin; first < end; first += kChunk) {
                        const std::int64_t last = std::min(end, first + kChunk);
                        start(to, beta, first, last);
                        for (const WindowedRange& range : ranges_)
                          if (range.columns.count() > 0)
                            add_window(to, windows + (range.place - range.columns.first) * columns,
                                       std::max(first, range.columns.first), std::min(last, range.columns.last));
                      }
                    });
  }

  /// Y = beta·Y in rows begin … end - 1.
  template <class T>
  void start(const Scatter<T>& to, T beta, std::int64_t begin, std::int64_t end) const {
    if (beta == T(1)) return;
    const std::int64_t columns = shape().columns;
    const std::int64_t lines = to.ldy == columns ? 1 : end - begin, length = lines == 1 ? (end - begin) * columns : columns;
    for (std::int64_t line = 0; line < lines; ++line) {
      T* const y = to.y + (begin + line) * to.ldy;
      if (beta == T(0)) std::fill(y, y + length, T(0));
      else
        for (std::int64_t i = 0; i < length; ++i) y[i] *= beta;
    }
  }

  template <class T>
  void add_window(const Scatter<T>& to, const T* window, std::int64_t begin, std::int64_t end) const {
    const std::int64_t columns = shape().columns;
    if (to.ldy == columns) {
      T* const y = to.y;
      for (std::int64_t i = begin * columns; i < end * columns; ++i) y[i] += window[i];
      return;
    }
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t j = 0; j < columns; ++j) to.y[i * to.ldy + j] += window[i * columns + j];
  }

  template <class T>
  void walk(const WindowedRange& range, const Scatter<T>& to) const {
    run_compiled_for(isa_, [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
      if (shape().columns == 1 && to.ldx == 1 && to.ldy == 1) Walk::template one<Set>(*a_, range.begin, range.end, to);
      else Walk::template several<Set>(*a_, range.begin, range.end, to, shape().columns);
    });
  }

  std::shared_ptr<const S> a_;
  std::vector<WindowedRange> ranges_;
  Buffer windows_;
  Isa isa_ = instruction_set();
};

}  // namespace shardmat
