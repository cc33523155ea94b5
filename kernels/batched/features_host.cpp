// Graph convolutions on host threads: the reference of the other, and what runs without a GPU. A tile of rows of A·X stays
// in cache and is multiplied with W; or X·W of a matrix stays there, where weights_first() says so.
//
// Order of summation: the product with A as in host_rows.h; the product with W has one sum, from the first feature to the
// last.
#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "kernels/base/host_vector.h"
#include "kernels/base/parallel.h"
#include "kernels/batched/features_plans.h"
#include "kernels/batched/host_columns.h"
#include "kernels/batched/host_rows.h"

namespace shardmat {
namespace {

using namespace batched;

/// Rows of T that begin `leading` entries apart.
template <class T>
struct Rows {
  const T* data;
  std::int64_t leading;
};

constexpr std::int64_t kRowsAtOnce = 4;

/// Rows row … row + kRowsAtOnce - 1 of `rows`, of the first factor times W. The last row stands for those beyond it: code
/// for fewer rows would be as much again.
template <class Set, class T>
SHARDMAT_INLINE void multiply_four_rows(Operands<T, T> y, Rows<T> factor, Rows<T> w, std::int64_t in, std::int64_t row,
                                        std::int64_t rows) {
  constexpr int kWidest = static_cast<int>(Set::kRegisters / 8 * Set::kBytes / sizeof(T));
  const bool plain = y.plain();
  const T* entries[kRowsAtOnce];
  for (std::int64_t r = 0; r < kRowsAtOnce; ++r) entries[r] = factor.data + std::min(row + r, rows - 1) * factor.leading;
  for_each_group<kWidest>(y.columns, [&]<int W>(std::integral_constant<int, W>, std::int64_t column) SHARDMAT_INLINE_LAMBDA {
    constexpr int kLanes = kLanesOfGroup<Set, T, W>, kPacks = W / kLanes;
    Lanes<T, kLanes> sum[kRowsAtOnce][kPacks] = {};
    for (std::int64_t i = 0; i < in; ++i)
#pragma GCC unroll 4
      for (int p = 0; p < kPacks; ++p) {
        const Lanes<T, kLanes> weight = load<kLanes>(w.data + i * w.leading + column + p * kLanes);
#pragma GCC unroll 4
        for (int r = 0; r < kRowsAtOnce; ++r) add_product<Set>(sum[r][p], entries[r][i], weight);
      }
#pragma GCC unroll 4
    for (int r = 0; r < kRowsAtOnce; ++r)
      if (row + r < rows)
#pragma GCC unroll 4
        for (int p = 0; p < kPacks; ++p) finish<Set, kLanes>(y, plain, row + r, column + p * kLanes, sum[r][p]);
  });
}

/// Y = factor·W with the epilogue of `y`, for `rows` rows of `in` features.
template <class T>
void multiply_features(Isa isa, const Operands<T, T>& y, const Rows<T>& factor, const Rows<T>& w, std::int64_t in,
                       std::int64_t rows) {
  run_compiled_for(isa, [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
    for (std::int64_t row = 0; row < rows; row += kRowsAtOnce) multiply_four_rows<Set>(y, factor, w, in, row, rows);
  });
}

/// Values as f32.
template <class A>
void widen_values(Isa isa, std::int64_t count, const A* from, float* to) {
  run_compiled_for(isa, [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA {
    constexpr int kLanes = Set::kBytes / sizeof(float);
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) store(to + i, widen<kLanes>(from + i));
    for (; i < count; ++i) to[i] = widen<1>(from + i);
  });
}

/// Operands whose Y is just the sums.
template <class T, class X = T>
Operands<T, X> sums_in(T* y, std::int64_t leading, std::int64_t columns) {
  return {nullptr, 0, y, leading, static_cast<int>(columns), T(1), T(0), nullptr, false};
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
        tiles_(starts_.size() * tile_bytes()),
        weights_(is_half(this->batch().type) ? static_cast<std::size_t>(in * out) : 0) {
    if (!weights_first_) return;
    // A task has whole matrices.
    const std::vector<std::int32_t>& first = this->batch().at.first_row;
    for (std::int64_t& start : starts_) start = *std::lower_bound(first.begin(), first.end(), start);
  }

 private:
  static constexpr std::int64_t kMostWork = 1 << 20;  // so that the work of all rows fits 64 bits
  static constexpr std::int64_t kTileEntries = 1 << 13, kMostTileRows = 32;
  static constexpr std::int64_t kTileColumns = 64;  // of X·W

  /// Of a task: a tile, and behind it some rows of X.
  std::int64_t tile_entries() const { return tile_rows_ * tile_columns_; }
  std::size_t tile_bytes() const {
    return static_cast<std::size_t>(tile_entries() + (weights_first_ ? kRowsAtOnce * in() : 0)) * sizeof(double);
  }

  void run(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
           const Epilogue& epilogue, Stream&) const override {
    dispatch_operands(batch().type, [&]<class A, class T>(TypeTag<A>, TypeTag<T>) {
      const auto v = operands<T, A>(out(), x, ldx, y, ldy, epilogue);
      const Rows<T> weights = weights_of(Rows<A>{static_cast<const A*>(w), ldw});
      parallel_tasks(std::ssize(starts_) - 1, [&](std::int64_t task) {
        const auto i = static_cast<std::size_t>(task);
        if (weights_first_) multiply_weights_first(v, weights, i);
        else multiply(v, weights, i);
      });
    });
  }

  template <class T>
  Rows<T> weights_of(const Rows<T>& w) const requires std::is_floating_point_v<T> {
    return w;
  }
  template <class A>
  Rows<float> weights_of(const Rows<A>& w) const {
    constexpr std::int64_t kGrain = 1 << 16;  // entries
    parallel_ranges(in(), kGrain / out() + 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        widen_values(isa_, out(), w.data + i * w.leading, weights_.data() + i * out());
    });
    return {weights_.data(), out()};
  }

  template <class T, class A>
  void multiply(const Operands<T, A>& v, const Rows<T>& w, std::size_t task) const {
    const DeviceBatch& b = batch();
    T* tile = reinterpret_cast<T*>(tiles_.data() + task * tile_bytes());
    const std::vector<std::int32_t>& first_row = b.at.first_row;
    const std::int64_t end = starts_[task + 1];
    auto matrix =
        static_cast<std::size_t>(matrix_of(starts_[task], first_row.data(), static_cast<std::int32_t>(b.at.count())));
    for (std::int64_t from = starts_[task]; from < end; from += tile_rows_) {
      const std::int64_t to = std::min(from + tile_rows_, end);
      for (std::int64_t row = from; row < to;) {
        while (row >= first_row[matrix + 1]) ++matrix;
        const std::int64_t next = std::min<std::int64_t>(to, first_row[matrix + 1]);
        const ColumnsOfX<A> x{v.x + b.at.first_col[matrix] * v.ldx, v.ldx};
        const HostRows<A> a{b.row_ptr + row, b.col_idx, static_cast<const A*>(b.values), x, has_uneven_rows(b, matrix)};
        multiply_rows(isa_, sums_in<T, A>(tile + (row - from) * in(), in(), in()), a, next - row);
        row = next;
      }
      multiply_features<T>(isa_, part_of_y(v, from, 0, out()), {tile, in()}, w, in(), to - from);
    }
  }

  template <class T, class A>
  void multiply_weights_first(const Operands<T, A>& v, const Rows<T>& w, std::size_t task) const {
    const DeviceBatch& b = batch();
    T* product = reinterpret_cast<T*>(tiles_.data() + task * tile_bytes());
    std::int64_t row = starts_[task];
    auto matrix = static_cast<std::size_t>(matrix_of(row, b.at.first_row.data(), static_cast<std::int32_t>(b.at.count())));
    for (; row < starts_[task + 1]; row = b.at.first_row[++matrix])
      for (std::int64_t first = 0; first < out(); first += tile_columns_) {
        const std::int64_t columns = std::min(tile_columns_, out() - first);
        multiply_x(v, matrix, {w.data + first, w.leading}, columns, product);
        const HostRows<A, T> a{b.row_ptr + row,
                               b.col_idx,
                               static_cast<const A*>(b.values),
                               {product, tile_columns_},
                               has_uneven_rows(b, matrix)};
        multiply_rows(isa_, part_of_y(v, row, first, columns), a, b.at.first_row[matrix + 1] - row);
      }
  }

  /// product = the rows of X that belong to the matrix, times columns of W.
  template <class T, class A>
  void multiply_x(const Operands<T, A>& v, std::size_t matrix, const Rows<T>& w, std::int64_t columns, T* product) const {
    const std::int64_t begin = batch().at.first_col[matrix], cols = batch().at.first_col[matrix + 1] - begin;
    const A* x = v.x + begin * v.ldx;
    if constexpr (std::is_same_v<A, T>) {
      multiply_features<T>(isa_, sums_in(product, tile_columns_, columns), {x, v.ldx}, w, in(), cols);
    } else {
      T* wide = product + tile_entries();
      for (std::int64_t i = 0; i < cols; i += kRowsAtOnce) {
        const std::int64_t rows = std::min(kRowsAtOnce, cols - i);
        for (std::int64_t r = 0; r < rows; ++r) widen_values(isa_, in(), x + (i + r) * v.ldx, wide + r * in());
        multiply_features<T>(isa_, sums_in(product + i * tile_columns_, tile_columns_, columns), {wide, in()}, w, in(),
                             rows);
      }
    }
  }

  /// Y from a row and a column on, without X.
  template <class T, class A>
  static Operands<T, T> part_of_y(const Operands<T, A>& v, std::int64_t row, std::int64_t first, std::int64_t columns) {
    return {nullptr,
            0,
            v.y + row * v.ldy + first,
            v.ldy,
            static_cast<int>(columns),
            v.alpha,
            v.beta,
            v.bias == nullptr ? nullptr : v.bias + first,
            v.relu};
  }

  bool weights_first_;
  std::vector<std::int64_t> starts_;
  std::int64_t tile_rows_, tile_columns_;
  Isa isa_ = instruction_set();
  mutable HostVector<std::byte> tiles_;  ///< rows of A·X, or X·W of a matrix; a tile for each task
  mutable HostVector<float> weights_;    ///< W as f32, where its values have 16 bits
};

}  // namespace

std::unique_ptr<FeaturePlan> make_features_host(std::shared_ptr<const DeviceBatch> batch, std::int64_t in,
                                                std::int64_t out) {
  return std::make_unique<FeaturesHost>(std::move(batch), in, out);
}

}  // namespace shardmat
