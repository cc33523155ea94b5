// A transposed product on host threads by a map of the columns. A column is summed over its rows in ascending order.
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/choose/gather_columns.h"
#include "kernels/host/dense_columns.h"
#include "kernels/host/even_starts.h"
#include "kernels/host/ranges.h"

namespace shardmat {
namespace {

template <class T>
struct GatherOperands {
  T alpha;
  const T* x;
  std::int64_t ldx;
  T beta;
  T* y;
  std::int64_t ldy;
};

/// Right-hand sides first … first + W - 1 of one column of A.
template <class Set, int W, class T>
SHARDMAT_INLINE void gather_column(const ColumnEntries& entries, const PlacedValues<T>& values, std::int64_t column,
                                   std::int64_t first, const GatherOperands<T>& v) {
  Lanes<T, W> sum = {};
  for (std::int64_t k = entries.starts()[column]; k < entries.starts()[column + 1]; ++k)
    add_product<Set>(sum, load<W>(v.x + entries.rows()[k] * v.ldx + first), values[entries.places()[k]]);
  T* const y = v.y + column * v.ldy + first;
  Lanes<T, W> product = v.alpha * sum;
  if (v.beta != T(0)) product += v.beta * load<W>(y);
  store(y, product);
}

class GatherColumnsHost final : public TransposePlan {
 public:
  GatherColumnsHost(std::shared_ptr<const Storage> storage, std::shared_ptr<const ColumnEntries> entries,
                    const TransposeShape& shape)
      : TransposePlan(std::move(storage), shape),
        entries_(std::move(entries)),
        starts_(even_starts(std::min(shape.entries, entries_->columns()),
                            [&](std::int64_t column) { return entries_->starts()[column] + column; })) {}

  void multiply(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
                Stream&) const override {
    dispatch(storage().type, [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      const PlacedValues<T> values(storage());
      const GatherOperands<T> v{static_cast<T>(alpha), static_cast<const T*>(x), ldx,
                                static_cast<T>(beta),  static_cast<T*>(y),       ldy};
      for_each_range(starts_, isa_, [&]<class Set>(Set, std::int64_t begin, std::int64_t end) SHARDMAT_INLINE_LAMBDA {
        constexpr int kWidest = static_cast<int>(Set::kBytes / sizeof(T));
        for (std::int64_t column = begin; column < end; ++column)
          for_each_group<kWidest>(
              shape().columns, [&]<int W>(std::integral_constant<int, W>, std::int64_t first)
                                   SHARDMAT_INLINE_LAMBDA { gather_column<Set, W>(*entries_, values, column, first, v); });
      });
    });
  }
  std::int64_t extra_bytes() const override { return 0; }
  std::string_view name() const override { return "a map of the columns"; }

 private:
  std::shared_ptr<const ColumnEntries> entries_;
  std::vector<std::int64_t> starts_;
  Isa isa_ = instruction_set();
};

}  // namespace

std::unique_ptr<TransposePlan> make_gather_columns_host(std::shared_ptr<const Storage> storage,
                                                        std::shared_ptr<const ColumnEntries> entries,
                                                        const TransposeShape& shape) {
  return std::make_unique<GatherColumnsHost>(std::move(storage), std::move(entries), shape);
}

}  // namespace shardmat
