// A transposed product by a map of the columns: L neighbouring threads share a column of A, in which each takes every L-th
// entry; a tree in a fixed order adds their sums. So bits are the same each time, and no sum is written twice.
//
// Neighbouring columns of a mesh lead to neighbouring rows, whose values and entries of x come from the same cache lines.
#include <algorithm>
#include <utility>

#include "kernels/choose/gather_columns.h"
#include "kernels/cuda/launch.h"

namespace shardmat {
namespace {

constexpr int kThreads = 256;

template <class T>
struct GatherColumns {
  std::int64_t columns;  ///< of A that have a row in Y
  const std::int64_t* starts;
  const std::int32_t* rows;
  const std::uint32_t* places;
  PlacedValues<T> values;
  T alpha;
  const T* x;
  std::int64_t ldx;
  T beta;
  T* y;
  std::int64_t ldy;
};

/// Right-hand sides first … first + W - 1 of a column, where first = W · blockIdx.y; `count` in all.
template <class T, int L, int W>
__global__ void gather_columns(GatherColumns<T> g, std::int64_t count) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t column = thread / L, first = static_cast<std::int64_t>(blockIdx.y) * W;
  const int lane = static_cast<int>(thread % L);
  T sum[W] = {};
  if (column < g.columns) {
    const std::int64_t end = g.starts[column + 1];
#pragma unroll 4
    for (std::int64_t k = g.starts[column] + lane; k < end; k += L) {
      const T value = g.values[__ldg(g.places + k)];
      const T* const of_x = g.x + static_cast<std::int64_t>(__ldg(g.rows + k)) * g.ldx + first;
#pragma unroll
      for (int j = 0; j < W; ++j)
        if (W == 1 || first + j < count) sum[j] = fma(value, of_x[j], sum[j]);
    }
  }
#pragma unroll
  for (int j = 0; j < W; ++j)
#pragma unroll
    for (int offset = L / 2; offset > 0; offset /= 2) sum[j] += __shfl_xor_sync(0xffffffffu, sum[j], offset, L);
  if (column >= g.columns || lane != 0) return;
  T* const y = g.y + column * g.ldy + first;
#pragma unroll
  for (int j = 0; j < W; ++j)
    if (W == 1 || first + j < count) y[j] = g.beta == T(0) ? g.alpha * sum[j] : fma(g.beta, y[j], g.alpha * sum[j]);
}

/// Calls f(std::integral_constant<int, L>()) for the threads of a column.
template <class F>
void with_threads(int threads, const F& f) {
  if (threads <= 2) f(std::integral_constant<int, 2>());
  else if (threads <= 8) f(std::integral_constant<int, 8>());
  else f(std::integral_constant<int, 32>());
}

class GatherColumnsCuda final : public TransposePlan {
 public:
  GatherColumnsCuda(std::shared_ptr<const Storage> storage, std::shared_ptr<const ColumnEntries> entries,
                    const TransposeShape& shape)
      : TransposePlan(std::move(storage), shape),
        entries_(std::move(entries)),
        columns_(std::min(shape.entries, entries_->columns())) {
    const std::int64_t mean = entries_->nnz() / std::max<std::int64_t>(1, columns_);
    threads_ = mean < 6 ? 2 : mean < 48 ? 8 : 32;
  }

  void multiply(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
                Stream& stream) const override {
    dispatch(storage().type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const GatherColumns<T> g{columns_,
                               entries_->starts(),
                               entries_->rows(),
                               entries_->places(),
                               PlacedValues<T>(storage()),
                               static_cast<T>(alpha),
                               static_cast<const T*>(x),
                               ldx,
                               static_cast<T>(beta),
                               static_cast<T*>(y),
                               ldy};
      with_threads(threads_, [&](auto lanes) {
        constexpr int L = decltype(lanes)::value;
        const std::int64_t count = shape().columns, blocks = (columns_ * L + kThreads - 1) / kThreads;
        if (count == 1) cuda::launch_grid(gather_columns<T, L, 1>, blocks, 1, dim3(kThreads), 0, stream, g, count);
        else
          for (std::int64_t first = 0; first < count; first += kMostAtOnce) {  // a grid has 65535 blocks across
            const std::int64_t now = std::min(kMostAtOnce, count - first);
            GatherColumns<T> some = g;
            some.x += first, some.y += first;
            cuda::launch_grid(gather_columns<T, L, kWidth>, blocks, (now + kWidth - 1) / kWidth, dim3(kThreads), 0, stream,
                              some, now);
          }
      });
    });
  }
  std::int64_t extra_bytes() const override { return 0; }
  std::string_view name() const override { return "a map of the columns"; }

 private:
  static constexpr int kWidth = 4;  ///< right-hand sides of a thread
  static constexpr std::int64_t kMostAtOnce = std::int64_t{kWidth} * 32768;

  std::shared_ptr<const ColumnEntries> entries_;
  std::int64_t columns_;
  int threads_ = 8;
};

}  // namespace

std::unique_ptr<TransposePlan> make_gather_columns_cuda(std::shared_ptr<const Storage> storage,
                                                        std::shared_ptr<const ColumnEntries> entries,
                                                        const TransposeShape& shape) {
  return std::make_unique<GatherColumnsCuda>(std::move(storage), std::move(entries), shape);
}

}  // namespace shardmat
