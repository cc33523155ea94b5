// Graph convolutions on host threads: the reference of the other, and what runs without a GPU. A tile of rows of A·X stays
// in cache and is multiplied with W.
//
// Order of summation: A·X as in host_rows.h; the product with W has one sum, from the first feature to the last.
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

/// Rows row … row + R - 1 of Y, all columns. `features`: these rows of A·X, `in` entries each.
template <class Set, int R, class T, class A>
SHARDMAT_INLINE void multiply_features(const Operands<T, A>& v, const Weights<A>& w, const T* features, std::int64_t in,
                                       std::int64_t row) {
  constexpr int kWidest = static_cast<int>(Set::kRegisters / 8 * Set::kBytes / sizeof(T));
  for_each_group<kWidest>(v.columns, [&]<int W>(std::integral_constant<int, W>, std::int64_t first) SHARDMAT_INLINE_LAMBDA {
    constexpr int kLanes = kLanesOfGroup<Set, T, W>, kPacks = W / kLanes;
    Lanes<T, kLanes> sum[R][kPacks] = {};
    const ColumnsOfX<A, true> weights{w.data, w.leading, 1};
    for (std::int64_t i = 0; i < in; ++i)
#pragma GCC unroll 4
      for (int p = 0; p < kPacks; ++p) {
        const Lanes<T, kLanes> weight = weights.template get<T, kLanes>(i, first + p * kLanes);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) add_product<Set>(sum[r][p], features[r * in + i], weight);
      }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int p = 0; p < kPacks; ++p) finish<Set, false, kLanes>(v, row + r, first + p * kLanes, sum[r][p]);
  });
}

class FeaturesHost final : public FeaturePlan {
 public:
  FeaturesHost(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out)
      : FeaturePlan(std::move(batch), in, out),
        starts_(task_starts(this->batch(), {std::min(in * out / 16 + 1, kMostWork), (in + 15) / 16})),
        tile_rows_(std::clamp<std::int64_t>(kTileEntries / in, 1, kMostTileRows)),
        tiles_(starts_.size() * tile_bytes()) {}

 private:
  static constexpr std::int64_t kMostWork = 1 << 20;  // so that the work of all rows fits 64 bits
  static constexpr std::int64_t kTileEntries = 1 << 13, kMostTileRows = 32;

  std::size_t tile_bytes() const { return static_cast<std::size_t>(tile_rows_ * in()) * sizeof(double); }

  void run(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
           const Epilogue& epilogue, Stream&) const override {
    dispatch_operands(batch().type, [&]<class A, class T>(TypeTag<A>, TypeTag<T>) {
      const auto v = operands<T, A>(out(), x, ldx, y, ldy, epilogue);
      const Weights<A> weights{static_cast<const A*>(w), ldw};
      parallel_tasks(std::ssize(starts_) - 1, [&](std::int64_t task) {
        run_compiled_for(
            isa_, [&]<class Set>(Set) SHARDMAT_INLINE_LAMBDA { multiply<Set>(v, weights, static_cast<std::size_t>(task)); });
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
      std::int64_t i = 0;
      for (; i + 4 <= rows; i += 4) multiply_features<Set, 4>(v, w, tile + i * in(), in(), from + i);
      for (; i < rows; ++i) multiply_features<Set, 1>(v, w, tile + i * in(), in(), from + i);
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

  std::vector<std::int64_t> starts_;
  std::int64_t tile_rows_;
  Isa isa_ = instruction_set();
  mutable HostVector<std::byte> tiles_;  ///< rows of A·X, a tile for each task
};

}  // namespace

std::unique_ptr<FeaturePlan> make_features_host(std::shared_ptr<const DeviceBatch> batch, std::int64_t in,
                                                std::int64_t out) {
  return std::make_unique<FeaturesHost>(std::move(batch), in, out);
}

}  // namespace shardmat
