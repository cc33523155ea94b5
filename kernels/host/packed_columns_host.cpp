// Packed rows with block = lanes = 1 and a few right-hand sides on host threads: the columns of X lie apart, so that each
// vector of values is loaded once for all of them. Where X lies by rows, its columns are copied first; the rows of a
// stencil read an entry of x a dozen times. Each column is summed as packed_host sums a single one.
#include <utility>

#include "kernels/formats/packed_spmm.h"
#include "kernels/host/packed_lanes.h"
#include "kernels/host/ranges.h"
#include "kernels/vector.h"

namespace shardmat {
namespace {

constexpr int kMostColumns = 4;  // more have vectors of X's rows to themselves

/// Entries from one column of X to the next, so that their equal rows lie in different sets of a cache: these repeat every
/// 4 KiB, and grids have powers of two as their sizes.
std::int64_t apart(std::int64_t cols, ValueType type) {
  const auto page = 4096 / static_cast<std::int64_t>(size_of(type)), odd = 576 / static_cast<std::int64_t>(size_of(type));
  return (cols + page - 1) / page * page + odd;
}

/// Y, whose entries lie `row` and `column` values apart.
template <class T>
struct SpacedY {
  T* data;
  std::int64_t row, column;
  T alpha, beta;
};

template <class Set, int K, class T>
SHARDMAT_INLINE void multiply_slices(const PackedStorage& a, const std::vector<packed::RowSplits>& splits,
                                     std::int64_t begin, std::int64_t end, const T* x, std::int64_t ldx,
                                     const SpacedY<T>& y) {
  std::array<const T*, K> columns;
  for (std::size_t c = 0; c < K; ++c) columns[c] = x + static_cast<std::int64_t>(c) * ldx;
  const bool dense = y.row == K && y.column == 1 && y.beta == T(0);
  const auto store = [&](std::int64_t row, int first, int last, const auto& sum) SHARDMAT_INLINE_LAMBDA {
    if (dense) {
      T* const to = y.data + row * K;
      for (int lane = first; lane < last; ++lane)
#pragma GCC unroll 4
        for (int c = 0; c < K; ++c) to[lane * K + c] = y.alpha * sum[c][lane];
    } else {
      for (int lane = first; lane < last; ++lane)
        for (int c = 0; c < K; ++c) put<Set>(y.data[(row + lane) * y.row + c * y.column], y.alpha * sum[c][lane], y.beta);
    }
  };
  for (std::int64_t s = begin; s < end; ++s)
    packed::multiply_columns<Set, T, K>(packed::SingleRowSlice<T>(a, s), splits[static_cast<std::size_t>(s)], columns,
                                        store);
}

class PackedColumnsHostPlan final : public SpmmPlan {
 public:
  PackedColumnsHostPlan(std::shared_ptr<PackedStorage> a, const RightHandSides& rhs)
      : SpmmPlan(a, rhs), a_(std::move(a)), starts_(packed::even_slice_starts(*a_)), splits_(packed::row_splits(*a_)) {
    if (rhs.x == DenseOrder::row_major)
      columns_ = Buffer(Device{}, static_cast<std::size_t>(apart(a_->cols, a_->type) * rhs.count) * size_of(a_->type));
  }
  std::int64_t extra_bytes() const override {
    return static_cast<std::int64_t>(columns_.bytes() + splits_.size() * sizeof(packed::RowSplits));
  }

 private:
  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy,
           Stream& stream) const override {
    const RightHandSides& rhs = right_hand_sides();
    if (rhs.x == DenseOrder::row_major) {
      ConstDense rows;
      rows.data = x, rows.rows = a_->cols, rows.columns = rhs.count, rows.leading = ldx, rows.type = a_->type;
      copy_matrix(
          rows,
          {columns_.data(), a_->cols, rhs.count, apart(a_->cols, a_->type), DenseOrder::column_major, a_->type, Device{}},
          stream);
      x = columns_.data(), ldx = apart(a_->cols, a_->type);
    }
    const bool by_rows = rhs.y == DenseOrder::row_major;
    dispatch(a_->type, [&]<class T>(TypeTag<T>) {
      for_each_range(starts_, isa_, [&]<class Set>(Set, std::int64_t begin, std::int64_t end) SHARDMAT_INLINE_LAMBDA {
        const SpacedY<T> to{static_cast<T*>(y), by_rows ? ldy : 1, by_rows ? 1 : ldy, static_cast<T>(alpha),
                            static_cast<T>(beta)};
        const auto multiply = [&]<int K>(std::integral_constant<int, K>) SHARDMAT_INLINE_LAMBDA {
          multiply_slices<Set, K, T>(*a_, splits_, begin, end, static_cast<const T*>(x), ldx, to);
        };
        if (rhs.count == 1) multiply(std::integral_constant<int, 1>());
        else if (rhs.count == 2) multiply(std::integral_constant<int, 2>());
        else if (rhs.count == 3) multiply(std::integral_constant<int, 3>());
        else multiply(std::integral_constant<int, kMostColumns>());
      });
    });
  }

  std::shared_ptr<PackedStorage> a_;
  std::vector<std::int64_t> starts_;
  std::vector<packed::RowSplits> splits_;
  Buffer columns_;  ///< of X; empty if X lies by columns
  Isa isa_ = instruction_set();
};

}  // namespace

bool packed_columns_host_supports(const Storage& storage, const RightHandSides& rhs) {
  return packed::has_single_rows(static_cast<const PackedStorage&>(storage)) && rhs.count <= kMostColumns;
}

std::unique_ptr<SpmmPlan> make_packed_columns_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs,
                                                   const Policy&, Stream&) {
  return std::make_unique<PackedColumnsHostPlan>(std::static_pointer_cast<PackedStorage>(std::move(storage)), rhs);
}

}  // namespace shardmat
