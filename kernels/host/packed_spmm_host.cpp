// Packed rows with block = lanes = 1 and many right-hand sides on host threads. Each column is summed as packed_host sums a
// single one.
#include <iterator>

#include "kernels/base/parallel.h"
#include "kernels/formats/packed_spmm.h"
#include "kernels/host/csr_columns.h"
#include "kernels/host/packed_slices.h"
#include "kernels/host/ranges.h"

namespace shardmat {
namespace {

/// Columns first … first + W - 1 of R rows of a slice, from lane `lane` on.
template <class Set, int W, int R, class T>
SHARDMAT_INLINE void multiply_group(const packed::SingleRowSlice<T>& slice, const packed::RowsOfLanes& row,
                                    const ColumnsOfX<T>& x, const ColumnsOfY<T>& y, int lane, std::int64_t first) {
  constexpr int kLanes = kLanesOfGroup<Set, T, W>, kPacks = W / kLanes;
  Lanes<T, kLanes> sums[R][kPacks] = {};
  const auto add = [&](const T* values, const auto& column) SHARDMAT_INLINE_LAMBDA {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int p = 0; p < kPacks; ++p)
        add_product<Set>(sums[r][p], values[lane + r], x.template get<T, kLanes>(column(lane + r), first + p * kLanes));
  };
  slice.for_each_shared_slot([&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
    add(values, [&](int of) SHARDMAT_INLINE_LAMBDA { return row[of] + delta; });
  });
  slice.for_each_other_slot(add);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
    if (lane + r < slice.rows())
#pragma GCC unroll 2
      for (int p = 0; p < kPacks; ++p) y.template put<Set>(row[lane + r], first + p * kLanes, sums[r][p]);
}

template <class Set, class T>
SHARDMAT_INLINE void multiply_slice(const PackedStorage& a, std::int64_t s, std::int64_t columns, const ColumnsOfX<T>& x,
                                    const ColumnsOfY<T>& y) {
  constexpr int kWidest = static_cast<int>(2 * Set::kBytes / sizeof(T)), kRows = Set::kRegisters == 32 ? 8 : 4;
  const packed::SingleRowSlice<T> slice(a, s);
  const packed::RowsOfLanes row = slice.rows_of_lanes();
  for_each_group<kWidest>(columns, [&]<int W>(std::integral_constant<int, W>, std::int64_t first) SHARDMAT_INLINE_LAMBDA {
    if (slice.is_csr()) {
      for (int lane = 0; lane < slice.rows(); ++lane)
        multiply_row_group<Set, W>(slice.csr_values(lane), slice.csr_columns(lane), slice.csr_count(lane), x, y, row[lane],
                                   first);
    } else {
      for (int lane = 0; lane < slice.rows(); lane += kRows) multiply_group<Set, W, kRows>(slice, row, x, y, lane, first);
    }
  });
}

class PackedSpmmHostPlan final : public SpmmPlan {
 public:
  PackedSpmmHostPlan(std::shared_ptr<PackedStorage> a, const RightHandSides& rhs)
      : SpmmPlan(a, rhs), a_(std::move(a)), starts_(packed::even_slice_starts(*a_)) {}

 private:
  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy, Stream&) const override {
    dispatch(a_->type, [&]<class T>(TypeTag<T>) {
      const ColumnsOfX<T> of_x{static_cast<const T*>(x), ldx};
      const ColumnsOfY<T> of_y(alpha, beta, y, ldy);
      for_each_range(starts_, isa_, [&]<class Set>(Set, std::int64_t begin, std::int64_t end) SHARDMAT_INLINE_LAMBDA {
        for (std::int64_t s = begin; s < end; ++s) multiply_slice<Set>(*a_, s, right_hand_sides().count, of_x, of_y);
      });
    });
  }

  std::shared_ptr<PackedStorage> a_;
  std::vector<std::int64_t> starts_;
  Isa isa_ = instruction_set();
};

}  // namespace

bool packed_spmm_host_supports(const Storage& storage, const RightHandSides&) {
  return packed::has_single_rows(static_cast<const PackedStorage&>(storage));
}

std::unique_ptr<SpmmPlan> make_packed_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy&,
                                                Stream&) {
  return std::make_unique<PackedSpmmHostPlan>(std::static_pointer_cast<PackedStorage>(std::move(storage)), rhs);
}

}  // namespace shardmat
