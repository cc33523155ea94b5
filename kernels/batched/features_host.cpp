// Graph convolutions on host threads: the reference of the other, and what runs without a GPU. A tile of rows of A·X stays
// in cache and is multiplied with W; or X·W of a matrix stays there, where weights_first() says so.
//
// Order of summation: the product with A as in host_rows.h; the product with W has one sum, from the first feature to the
// last.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/base/parallel.h"
#include "kernels/batched/features_plans.h"
#include "kernels/batched/host_rows.h"

namespace shardmat {
namespace {

using namespace batched;

/// The weights W, row-major.
template <class A>
struct Weights {
  const A* data;
  std::int64_t leading;
};

/// R rows of a product with W, columns first … first + columns - 1. feature(r, i): entry i of row r of the first factor.
/// Calls put(r, std::integral_constant<int, N>(), column, sum of N columns), columns counted from `first`.
template <class Set, int R, class T, class A, class Feature, class Put>
SHARDMAT_INLINE void multiply_features(const Weights<A>& w, std::int64_t first, std::int64_t columns, std::int64_t in,
                                       const Feature& feature, const Put& put) {
  constexpr int kWidest = static_cast<int>(Set::kRegisters / 8 * Set::kBytes / sizeof(T));
  for_each_group<kWidest>(columns, [&]<int W>(std::integral_constant<int, W>, std::int64_t column) SHARDMAT_INLINE_LAMBDA {
    constexpr int kLanes = kLanesOfGroup<Set, T, W>, kPacks = W / kLanes;
    Lanes<T, kLanes> sum[R][kPacks] = {};
    const ColumnsOfX<A, true> weights{w.data, w.leading, 1};
    for (std::int64_t i = 0; i < in; ++i)
#pragma GCC unroll 4
      for (int p = 0; p < kPacks; ++p) {
        const Lanes<T, kLanes> weight = weights.template get<T, kLanes>(i, first + column + p * kLanes);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) add_product<Set>(sum[r][p], feature(r, i), weight);
      }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int p = 0; p < kPacks; ++p) put(r, std::integral_constant<int, kLanes>(), column + p * kLanes, sum[r][p]);
  });
}

class FeaturesHost final : public FeaturePlan {
 public:
  FeaturesHost(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out)
      : FeaturePlan(std::move(batch), in, out),
        weights_first_(weights_first(this->batch().at, in, out)),
        starts_(task_starts(this->batch(), {std::min(in * out / 16 + 1, kMostWork), (std::min(in, out) + 15) / 16})),
        tile_rows_(weights_first_ ? this->batch().at.most_cols
                                  : std::clamp<std::int64_t>(kTileEntries / in, 1, kMostTileRows)),
        tile_columns_(weights_first_ ? std::min(out, kTileColumns) : in),
        tiles_(starts_.size() * tile_bytes()) {
    if (!weights_first_) return;
    // A task has whole matrices.
    const std::vector<std::int32_t>& first = this->batch().at.first_row;
    for (std::int64_t& start : starts_) start = *std::lower_bound(first.begin(), first.end(), start);
  }

 private:
  static constexpr std::int64_t kMostWork = 1 << 20;  // so that the work of all rows fits 64 bits
  static constexpr std::int64_t kTileEntries = 1 << 13, kMostTileRows = 32;
  static constexpr std::int64_t kTileColumns = 64;  // of X·W

  std::size_t tile_bytes() const { return static_cast<std::size_t>(tile_rows_ * tile_columns_) * sizeof(double); }

  void run(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
           const Epilogue& epilogue, Stream&) const override {
    dispatch_operands(batch().type, [&]<class A, class T>(TypeTag<A>, TypeTag<T>) {
      const auto v = operands<T, A>(out(), x, ldx, y, ldy, epilogue);
      const Weights<A> weights{static_cast<const A*>(w), ldw};
      parallel_tasks(std::ssize(starts_) - 1, [&](std::int64_t task) {
        const auto i = static_cast<std::size_t>(task);
        run_compiled_for(isa_, [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
          if (weights_first_) multiply_weights_first<Set>(v, weights, i);
          else multiply<Set>(v, weights, i);
        });
      });
    });
  }

  template <class Set, class T, class A>
  SHARDMAT_INLINE void multiply(const Operands<T, A>& v, const Weights<A>& w, std::size_t task) const {
    T* tile = reinterpret_cast<T*>(tiles_.data() + task * tile_bytes());
    const std::vector<std::int32_t>& first_row = batch().at.first_row;
    const std::int64_t end = starts_[task + 1];
    auto matrix =
        static_cast<std::size_t>(matrix_of(starts_[task], first_row.data(), static_cast<std::int32_t>(batch().at.count())));
    for (std::int64_t from = starts_[task]; from < end; from += tile_rows_) {
      const std::int64_t rows = std::min(tile_rows_, end - from);
      for (std::int64_t i = 0; i < rows; ++i) {
        while (from + i >= first_row[matrix + 1]) ++matrix;
        sum_features<Set>(v, from + i, matrix, tile + i * in());
      }
      const auto take = [&]<int R>(std::integral_constant<int, R>, std::int64_t i) SHARDMAT_INLINE_LAMBDA {
        multiply_features<Set, R, T>(
            w, 0, out(), in(),
            [&](std::int64_t r, std::int64_t f) SHARDMAT_INLINE_LAMBDA { return tile[(i + r) * in() + f]; },
            [&]<int N>(std::int64_t r, std::integral_constant<int, N>, std::int64_t column, const auto& sum)
                SHARDMAT_INLINE_LAMBDA { finish<Set, false, N>(v, from + i + r, column, sum); });
      };
      std::int64_t i = 0;
      for (; i + 4 <= rows; i += 4) take(std::integral_constant<int, 4>(), i);
      for (; i < rows; ++i) take(std::integral_constant<int, 1>(), i);
    }
  }

  template <class Set, class T, class A>
  SHARDMAT_INLINE void multiply_weights_first(const Operands<T, A>& v, const Weights<A>& w, std::size_t task) const {
    const DeviceBatch& b = batch();
    T* product = reinterpret_cast<T*>(tiles_.data() + task * tile_bytes());
    std::int64_t row = starts_[task];
    auto matrix = static_cast<std::size_t>(matrix_of(row, b.at.first_row.data(), static_cast<std::int32_t>(b.at.count())));
    for (; row < starts_[task + 1]; row = b.at.first_row[++matrix])
      for (std::int64_t first = 0; first < out(); first += tile_columns_) {
        const std::int64_t columns = std::min(tile_columns_, out() - first);
        const std::int64_t cols = b.at.first_col[matrix + 1] - b.at.first_col[matrix];
        const auto take = [&]<int R>(std::integral_constant<int, R>, std::int64_t i) SHARDMAT_INLINE_LAMBDA {
          const A* x = v.x + (b.at.first_col[matrix] + i) * v.ldx;
          multiply_features<Set, R, T>(
              w, first, columns, in(),
              [&](std::int64_t r, std::int64_t f) SHARDMAT_INLINE_LAMBDA { return static_cast<T>(x[r * v.ldx + f]); },
              [&]<int N>(std::int64_t r, std::integral_constant<int, N>, std::int64_t column, const auto& sum)
                  SHARDMAT_INLINE_LAMBDA { store(product + (i + r) * tile_columns_ + column, sum); });
        };
        std::int64_t i = 0;
        for (; i + 4 <= cols; i += 4) take(std::integral_constant<int, 4>(), i);
        for (; i < cols; ++i) take(std::integral_constant<int, 1>(), i);
        const HostRows<A, T> a{
            b.row_ptr, b.col_idx, static_cast<const A*>(b.values), {product, tile_columns_, 1}, has_uneven_rows(b, matrix)};
        for_each_group<kWidestGroup<Set, T>>(
            columns, [&]<int W>(std::integral_constant<int, W>, std::int64_t column) SHARDMAT_INLINE_LAMBDA {
              for (std::int64_t r = row; r < b.at.first_row[matrix + 1]; ++r)
                sum_row<Set, W, T>(a, r, column,
                                   [&]<int N>(std::integral_constant<int, N>, std::int64_t at, const auto& sum)
                                       SHARDMAT_INLINE_LAMBDA { finish<Set, false, N>(v, r, first + at, sum); });
            });
      }
  }

  /// Row `row` of A·X, which belongs to the matrix.
  template <class Set, class T, class A>
  SHARDMAT_INLINE void sum_features(const Operands<T, A>& v, std::int64_t row, std::size_t matrix, T* features) const {
    const DeviceBatch& b = batch();
    const ColumnsOfX<A, true> x{v.x + b.at.first_col[matrix] * v.ldx, v.ldx, 1};
    const HostRows<A> a{b.row_ptr, b.col_idx, static_cast<const A*>(b.values), x, has_uneven_rows(b, matrix)};
    for_each_group<kWidestGroup<Set, T>>(
        in(), [&]<int W>(std::integral_constant<int, W>, std::int64_t first) SHARDMAT_INLINE_LAMBDA {
          sum_row<Set, W, T>(a, row, first,
                             [&]<int N>(std::integral_constant<int, N>, std::int64_t column, const auto& sum)
                                 SHARDMAT_INLINE_LAMBDA { store(features + column, sum); });
        });
  }

  bool weights_first_;
  std::vector<std::int64_t> starts_;
  std::int64_t tile_rows_, tile_columns_;
  Isa isa_ = instruction_set();
  mutable HostVector<std::byte> tiles_;  ///< rows of A·X, or X·W of a matrix; a tile for each task
};

}  // namespace

std::unique_ptr<FeaturePlan> make_features_host(std::shared_ptr<const DeviceBatch> batch, std::int64_t in,
                                                std::int64_t out) {
  return std::make_unique<FeaturesHost>(std::move(batch), in, out);
}

}  // namespace shardmat
