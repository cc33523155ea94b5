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

/// The columns of a group in R rows of a slice, from lane `lane` on.
template <class Set, int R, class Group, class T>
SHARDMAT_INLINE void multiply_group(const packed::SingleRowSlice<T>& slice, const packed::RowsOfLanes& row,
                                    const ColumnsOfX<T>& x, const ColumnsOfY<T>& y, int lane, const Group& group) {
  constexpr int kLanes = Group::kLanes, kPacks = Group::kPacks;
  Lanes<T, kLanes> sums[R][kPacks] = {};
  const auto add = [&](const T* values, const auto& column) SHARDMAT_INLINE_LAMBDA {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int p = 0; p < kPacks; ++p)
        add_product<Set>(sums[r][p], values[lane + r], x.template get<T, kLanes>(column(lane + r), group.at(p)));
  };
  slice.for_each_shared_slot([&](const T* values, std::int32_t delta) SHARDMAT_INLINE_LAMBDA {
    add(values, [&](int of) SHARDMAT_INLINE_LAMBDA { return row[of] + delta; });
  });
  slice.for_each_other_slot(add);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
    if (lane + r < slice.rows())
#pragma GCC unroll 2
      for (int p = 0; p < kPacks; ++p) group.put(y, row[lane + r], p, sums[r][p]);
}

template <class Set, class T>
SHARDMAT_INLINE void multiply_slice(const PackedStorage& a, std::int64_t s, std::int64_t columns, bool beyond,
                                    const ColumnsOfX<T>& x, const ColumnsOfY<T>& y) {
  constexpr int kWidest = static_cast<int>(2 * Set::kBytes / sizeof(T)), kRows = Set::kRegisters == 32 ? 8 : 4;
  const packed::SingleRowSlice<T> slice(a, s);
  const packed::RowsOfLanes row = slice.rows_of_lanes();
  for_each_column_group<Set, T, kWidest>(columns, beyond, [&](const auto& group) SHARDMAT_INLINE_LAMBDA {
    if (slice.is_csr()) {
      for (int lane = 0; lane < slice.rows(); ++lane)
        multiply_row_group<Set>(slice.csr_values(lane), slice.csr_columns(lane), slice.csr_count(lane), x, y, row[lane],
                                group);
    } else {
      for (int lane = 0; lane < slice.rows(); lane += kRows) multiply_group<Set, kRows>(slice, row, x, y, lane, group);
    }
  });
}

class PackedSpmmHostPlan final : public SpmmPlan {
 public:
  PackedSpmmHostPlan(std::shared_ptr<PackedStorage> a, const RightHandSides& rhs)
      : SpmmPlan(a, rhs),
        a_(std::move(a)),
        starts_(packed::even_slice_starts(*a_)),
        beyond_(rhs.count, a_->slices, [&](std::int64_t s) { return reads_last_column(s); }) {}
  std::int64_t extra_bytes() const override { return beyond_.bytes(); }

 private:
  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy, Stream&) const override {
    dispatch(a_->type, [&]<class T>(TypeTag<T>) {
      const ColumnsOfX<T> of_x{static_cast<const T*>(x), ldx};
      const ColumnsOfY<T> of_y(alpha, beta, y, ldy);
      for_each_range(starts_, isa_, [&]<class Set>(Set, std::int64_t begin, std::int64_t end) SHARDMAT_INLINE_LAMBDA {
        for (std::int64_t s = begin; s < end; ++s)
          multiply_slice<Set>(*a_, s, right_hand_sides().count, beyond_.may(s, s + 1, ldx), of_x, of_y);
      });
    });
  }

  /// Also in a place that is filled with a zero.
  bool reads_last_column(std::int64_t s) const {
    bool found = false;
    dispatch(a_->type, [&]<class T>(TypeTag<T>) {
      const packed::SingleRowSlice<T> slice(*a_, s);
      const packed::RowsOfLanes row = slice.rows_of_lanes();
      if (slice.is_csr()) {
        for (int lane = 0; lane < slice.rows(); ++lane)
          for (std::int64_t k = 0; k < slice.csr_count(lane); ++k) found |= slice.csr_columns(lane)[k] == a_->cols - 1;
        return;
      }
      const auto look = [&](const auto& column) {
        for (int lane = 0; lane < kPackedLanes; ++lane) found |= column(lane) == a_->cols - 1;
      };
      slice.for_each_shared_slot([&](const T*, std::int32_t delta) { look([&](int lane) { return row[lane] + delta; }); });
      slice.for_each_other_slot([&](const T*, const auto& column) { look(column); });
    });
    return found;
  }

  std::shared_ptr<PackedStorage> a_;
  std::vector<std::int64_t> starts_;
  BeyondColumns beyond_;
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
