// CSR with many right-hand sides on host threads. Each column is summed as csr_host sums a single one.
#include <algorithm>
#include <iterator>

#include "kernels/formats/csr_spmm.h"
#include "kernels/host/csr_columns.h"
#include "kernels/host/csr_rows.h"
#include "kernels/host/ranges.h"

namespace shardmat {
namespace {

/// Rows begin … end - 1. A few rows at a time: they come from cache when the next group of columns needs them.
template <class Set, class A, class T>
SHARDMAT_INLINE void multiply_rows(const CsrStorage& a, std::int64_t begin, std::int64_t end, std::int64_t columns,
                                   const BeyondColumns& beyond, const ColumnsOfX<A>& x, const ColumnsOfY<T>& y) {
  constexpr int kWidest = static_cast<int>((Set::kRegisters == 32 ? 4 * Set::kBytes : 64) / sizeof(T));
  constexpr std::int64_t kRows = 8;
  const std::int32_t* narrow = a.wide_offsets ? nullptr : a.row_ptr.as<std::int32_t>();
  const std::int64_t* wide = a.row_ptr.as<std::int64_t>();
  const auto offset = [&](std::int64_t i) { return narrow != nullptr ? narrow[i] : wide[i]; };
  for (std::int64_t from = begin; from < end; from += kRows) {
    const std::int64_t to = std::min(end, from + kRows);
    for_each_column_group<Set, T, kWidest>(
        columns, beyond.may(from, to, x.row), [&](const auto& group) SHARDMAT_INLINE_LAMBDA {
          for (std::int64_t i = from; i < to; ++i)
            multiply_row_group<Set>(a.values.as<A>() + offset(i), a.col_idx.as<std::int32_t>() + offset(i),
                                    offset(i + 1) - offset(i), x, y, i, group);
        });
  }
}

class CsrSpmmHostPlan final : public SpmmPlan {
 public:
  CsrSpmmHostPlan(std::shared_ptr<CsrStorage> a, const RightHandSides& rhs)
      : SpmmPlan(a, rhs),
        a_(std::move(a)),
        starts_(even_row_starts(*a_)),
        beyond_(rhs.count, a_->rows, [&](std::int64_t row) {
          const auto* const columns = a_->col_idx.as<std::int32_t>();
          const std::int64_t begin = offset_of_row(*a_, row), end = offset_of_row(*a_, row + 1);
          return std::find(columns + begin, columns + end, a_->cols - 1) != columns + end;
        }) {}
  std::int64_t extra_bytes() const override { return beyond_.bytes(); }

 private:
  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy, Stream&) const override {
    dispatch_operands(a_->type, [&]<class A, class T>(TypeTag<A>, TypeTag<T>) {
      const ColumnsOfX<A> of_x{static_cast<const A*>(x), ldx};
      const ColumnsOfY<T> of_y(alpha, beta, y, ldy);
      for_each_range(starts_, isa_, [&]<class Set>(Set, std::int64_t begin, std::int64_t end) SHARDMAT_INLINE_LAMBDA {
        multiply_rows<Set>(*a_, begin, end, right_hand_sides().count, beyond_, of_x, of_y);
      });
    });
  }

  std::shared_ptr<CsrStorage> a_;
  std::vector<std::int64_t> starts_;
  BeyondColumns beyond_;
  Isa isa_ = instruction_set();
};

}  // namespace

std::unique_ptr<SpmmPlan> make_csr_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy&,
                                             Stream&) {
  return std::make_unique<CsrSpmmHostPlan>(std::static_pointer_cast<CsrStorage>(std::move(storage)), rhs);
}

}  // namespace shardmat
