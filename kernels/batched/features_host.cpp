// Graph convolutions on host threads: the reference of the other, and what runs without a GPU.
#include <algorithm>
#include <vector>

#include "kernels/base/parallel.h"
#include "kernels/batched/features_plans.h"
#include "kernels/batched/operands.h"

namespace shardmat {
namespace {

using namespace batched;

class FeaturesHost final : public FeaturePlan {
 public:
  FeaturesHost(std::shared_ptr<const DeviceBatch> batch, std::int64_t in, std::int64_t out)
      : FeaturePlan(std::move(batch), in, out) {}

 private:
  void run(const void* x, std::int64_t ldx, const void* w, std::int64_t ldw, void* y, std::int64_t ldy,
           const Epilogue& epilogue, Stream&) const override {
    dispatch_operands(batch().type, [&](auto of_a, auto of_sum) {
      using A = typename decltype(of_a)::type;
      using T = typename decltype(of_sum)::type;
      const auto v = operands<T, A>(out(), x, ldx, y, ldy, epilogue);
      parallel_ranges(batch().at.rows(), 1, [&](std::int64_t first, std::int64_t last) {
        std::vector<T> features(static_cast<std::size_t>(in())), sums(static_cast<std::size_t>(out()));
        const auto& starts = batch().at.first_row;
        auto matrix = static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), first) - starts.begin()) - 1;
        for (std::int64_t row = first; row < last; ++row) {
          while (row >= starts[matrix + 1]) ++matrix;
          multiply_row(v, static_cast<const A*>(w), ldw, row, batch().at.first_col[matrix], features, sums);
        }
      });
    });
  }

  /// `shift`: where in X the columns of the row's matrix begin.
  template <class T, class A>
  void multiply_row(const Operands<T, A>& v, const A* w, std::int64_t ldw, std::int64_t row, std::int64_t shift,
                    std::vector<T>& features, std::vector<T>& sums) const {
    const DeviceBatch& b = batch();
    std::fill(features.begin(), features.end(), T(0));
    for (std::int64_t k = b.row_ptr[row]; k < b.row_ptr[row + 1]; ++k) {
      const A* x = v.x + (shift + b.col_idx[k]) * v.ldx;
      const T value = static_cast<T>(static_cast<const A*>(b.values)[k]);
      for (std::size_t i = 0; i < features.size(); ++i) features[i] += value * static_cast<T>(x[i]);
    }
    std::fill(sums.begin(), sums.end(), T(0));
    for (std::size_t i = 0; i < features.size(); ++i) {
      const A* weights = w + static_cast<std::int64_t>(i) * ldw;
      for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += features[i] * static_cast<T>(weights[j]);
    }
    T* y = v.y + row * v.ldy;
    for (std::size_t j = 0; j < sums.size(); ++j)
      y[j] = finished(v, sums[j], v.beta == T(0) ? T(0) : y[j], static_cast<int>(j));
  }
};

}  // namespace

std::unique_ptr<FeaturePlan> make_features_host(std::shared_ptr<const DeviceBatch> batch, std::int64_t in,
                                                std::int64_t out) {
  return std::make_unique<FeaturesHost>(std::move(batch), in, out);
}

}  // namespace shardmat
