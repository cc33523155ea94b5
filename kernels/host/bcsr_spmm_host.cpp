// Blocked CSR with many right-hand sides on host threads. Each column is summed as bcsr_host sums a single one.
#include <algorithm>
#include <iterator>

#include "kernels/formats/bcsr_spmm.h"
#include "kernels/host/block_rows.h"
#include "kernels/host/dense_columns.h"
#include "kernels/host/ranges.h"

namespace shardmat {
namespace {

/// Columns of the widest group: two vectors where small blocks leave registers for them.
template <class Set, class T, int B>
constexpr int kWidestGroup = static_cast<int>((Set::kRegisters == 32 && B <= 3 ? 2 : 1) * Set::kBytes / sizeof(T));

/// Rows of a block row whose sums fit registers together: a divisor of B.
template <class Set, int B, int kPacks>
constexpr int rows_at_once() {
  int rows = B;
  while (rows > 1 && (B % rows != 0 || kChains<B> * rows * B * kPacks > Set::kRegisters - 4)) --rows;
  return rows;
}

/// The columns of a group in rows row … row + R - 1 of block row i.
template <class Set, int B, int R, class Group, class T>
SHARDMAT_INLINE void multiply_group(const BlockRows<T>& a, const ColumnsOfX<T>& x, const ColumnsOfY<T>& y, std::int64_t i,
                                    int row, const Group& group) {
  constexpr int kLanes = Group::kLanes, kPacks = Group::kPacks;
  using Pack = Lanes<T, kLanes>;
  Pack sums[kChains<B>][R][B][kPacks] = {};
  const auto add = [&](int chain, std::int64_t k) SHARDMAT_INLINE_LAMBDA {
    const T* block = a.values + (k * B + row) * B;
    const std::int64_t column = std::int64_t{a.block_col[k]} * B;
    const auto add_column = [&](int c) SHARDMAT_INLINE_LAMBDA {
#pragma GCC unroll 2
      for (int p = 0; p < kPacks; ++p) {
        const Pack of_x = x.template get<T, kLanes>(column + c, group.at(p));
#pragma GCC unroll 6
        for (int r = 0; r < R; ++r) add_product<Set>(sums[chain][r][c][p], block[r * B + c], of_x);
      }
    };
    if (column + B <= a.cols) {
#pragma GCC unroll 6
      for (int c = 0; c < B; ++c) add_column(c);
    } else {  // the block extends beyond the matrix
#pragma GCC unroll 6
      for (int c = 0; c < B; ++c)
        if (column + c < a.cols) add_column(c);
    }
  };
  std::int64_t k = a.offset(i);
  const std::int64_t last = a.offset(i + 1);
  for (; k + kChains<B> <= last; k += kChains<B>)
#pragma GCC unroll 2
    for (int chain = 0; chain < kChains<B>; ++chain) add(chain, k + chain);
  if (kChains<B> == 2 && k < last) add(0, k);
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r)
    if (i * B + row + r < a.rows)
#pragma GCC unroll 2
      for (int p = 0; p < kPacks; ++p) {
        Pack total = {};
#pragma GCC unroll 6
        for (int c = 0; c < B; ++c) {
          Pack sum = sums[0][r][c][p];
          if (kChains<B> == 2) sum += sums[kChains<B> - 1][r][c][p];
          total = c == 0 ? sum : total + sum;
        }
        group.put(y, i * B + row + r, p, total);
      }
}

template <class Set, int B, class T>
SHARDMAT_INLINE void multiply_block_rows(const BlockRows<T>& a, std::int64_t begin, std::int64_t end, std::int64_t columns,
                                         const BeyondColumns& beyond, const ColumnsOfX<T>& x, const ColumnsOfY<T>& y) {
  for (std::int64_t i = begin; i < end; ++i)
    for_each_column_group<Set, T, kWidestGroup<Set, T, B>>(
        columns, beyond.may(i, i + 1, x.row), [&](const auto& group) SHARDMAT_INLINE_LAMBDA {
          constexpr int kRows = rows_at_once<Set, B, std::decay_t<decltype(group)>::kPacks>();
          for (int row = 0; row < B; row += kRows) multiply_group<Set, B, kRows>(a, x, y, i, row, group);
        });
}

class BcsrSpmmHostPlan final : public SpmmPlan {
 public:
  BcsrSpmmHostPlan(std::shared_ptr<BcsrStorage> a, const RightHandSides& rhs)
      : SpmmPlan(a, rhs),
        a_(std::move(a)),
        starts_(even_block_row_starts(*a_)),
        beyond_(rhs.count, a_->block_rows, [&](std::int64_t i) { return has_last_column(i); }) {}
  std::int64_t extra_bytes() const override { return beyond_.bytes(); }

 private:
  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy, Stream&) const override {
    dispatch(a_->type, [&]<class T>(TypeTag<T>) {
      const ColumnsOfX<T> of_x{static_cast<const T*>(x), ldx};
      const ColumnsOfY<T> of_y(alpha, beta, y, ldy);
      const BlockRows<T> rows(*a_);
      // A function for each block size: one for all takes the compiler twice as long.
      with_block_size(a_->block(), [&]<int B>(std::integral_constant<int, B>) {
        for_each_range(starts_, isa_, [&]<class Set>(Set, std::int64_t begin, std::int64_t end) SHARDMAT_INLINE_LAMBDA {
          multiply_block_rows<Set, B>(rows, begin, end, right_hand_sides().count, beyond_, of_x, of_y);
        });
      });
    });
  }

  bool has_last_column(std::int64_t i) const {
    const std::int64_t last = (a_->cols - 1) / a_->block();
    const BlockRows<double> rows(*a_);  // their columns alone
    for (std::int64_t k = rows.offset(i); k < rows.offset(i + 1); ++k)
      if (rows.block_col[k] == last) return true;
    return false;
  }

  std::shared_ptr<BcsrStorage> a_;
  std::vector<std::int64_t> starts_;
  BeyondColumns beyond_;
  Isa isa_ = instruction_set();
};

}  // namespace

std::unique_ptr<SpmmPlan> make_bcsr_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy&,
                                              Stream&) {
  return std::make_unique<BcsrSpmmHostPlan>(std::static_pointer_cast<BcsrStorage>(std::move(storage)), rhs);
}

}  // namespace shardmat
