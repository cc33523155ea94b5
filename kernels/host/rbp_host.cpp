// Row block packing on host threads, row by row: runs first, then the single nonzeros. Products with several right-hand
// sides read the columns of a run once for a group of columns of X, and add each column as a product with one does, so that
// it has the same bits. Both take the instructions that every CPU has: fused multiply-add made one column slower.
#include <algorithm>

#include "kernels/base/parallel.h"
#include "kernels/formats/rbp.h"
#include "kernels/formats/rbp_spmm.h"
#include "kernels/host/dense_columns.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

/// Sums of a group of W columns that lie in vectors.
template <class Set, int W, class T>
struct GroupSum {
  static constexpr int kLanes = kLanesOfGroup<Set, T, W>, kPacks = W / kLanes;
  Lanes<T, kLanes> of[kPacks] = {};

  template <class X>
  SHARDMAT_INLINE void add(T value, const X& x, std::int64_t row_of_x, std::int64_t first) {
#pragma GCC unroll 8
    for (int p = 0; p < kPacks; ++p) add_product<Set>(of[p], value, x.template get<T, kLanes>(row_of_x, first + p * kLanes));
  }
};

/// The sum of one column of X without gaps.
template <class T>
struct OneSum {
  T of = 0;
  SHARDMAT_INLINE void add(T value, const T* x, std::int64_t row_of_x, std::int64_t) { of += value * x[row_of_x]; }
};

template <class Offset, class Sum, class T, class X>
SHARDMAT_INLINE void add_singles(Sum& sum, const RbpStorage& a, const X& x, std::int64_t row, std::int64_t first,
                                 TypeTag<T>) {
  const Offset* ptr = a.single_ptr.as<Offset>();
  const std::int32_t* columns = a.single_columns.as<std::int32_t>();
  const T* values = a.single_values.as<T>();
  for (Offset k = ptr[row]; k < ptr[row + 1]; ++k) sum.add(values[k], x, columns[k], first);
}

template <class Offset, class Sum, class T, class X>
SHARDMAT_INLINE void add_runs(Sum& sum, const RbpCsrStorage& a, const X& x, std::int64_t row, std::int64_t first,
                              TypeTag<T>) {
  const Offset* bound_ptr = a.bound_ptr.as<Offset>();
  const std::int32_t* bounds = a.run_bounds.as<std::int32_t>();
  const T* value = a.run_values.as<T>() + a.value_ptr.as<Offset>()[row];
  for (Offset run = bound_ptr[row]; run < bound_ptr[row + 1]; run += 2)
    for (std::int64_t column = bounds[run]; column <= bounds[run + 1]; ++column) sum.add(*value++, x, column, first);
}

template <class Offset, class Sum, class T, class X>
SHARDMAT_INLINE void add_runs(Sum& sum, const RbpEllStorage& a, const X& x, std::int64_t row, std::int64_t first,
                              TypeTag<T>) {
  const std::int32_t* bounds = a.run_bounds.as<std::int32_t>() + row;
  const T* value = a.run_values.as<T>() + row;
  for (std::int64_t c = 0; c < a.runs->statistics.max_bounds; c += 2) {
    const std::int64_t begin = bounds[c * a.rows], last = bounds[(c + 1) * a.rows];
    if (begin == last) break;  // padding: a run has two columns or more
    for (std::int64_t column = begin; column <= last; ++column, value += a.rows) sum.add(*value, x, column, first);
  }
}

/// Rows begin … end - 1. A few rows at a time: they come from cache when the next group of columns needs them.
template <class Set, class Offset, class S, class T>
SHARDMAT_INLINE void multiply_rows(const S& a, std::int64_t begin, std::int64_t end, std::int64_t columns,
                                   const ColumnsOfX<T>& x, const ColumnsOfY<T>& y) {
  constexpr int kWidest = static_cast<int>(4 * Set::kBytes / sizeof(T));
  constexpr std::int64_t kRows = 8;
  for (std::int64_t from = begin; from < end; from += kRows)
    for_each_group<kWidest>(columns, [&]<int W>(std::integral_constant<int, W>, std::int64_t first) SHARDMAT_INLINE_LAMBDA {
      for (std::int64_t i = from; i < std::min(end, from + kRows); ++i) {
        GroupSum<Set, W, T> runs, singles;
        add_runs<Offset>(runs, a, x, i, first, TypeTag<T>());
        add_singles<Offset>(singles, a, x, i, first, TypeTag<T>());
#pragma GCC unroll 8
        for (int p = 0; p < runs.kPacks; ++p) y.template put<Set>(i, first + p * runs.kLanes, runs.of[p] + singles.of[p]);
      }
    });
}

template <class S>
std::unique_ptr<Plan> make_rbp_host(std::shared_ptr<Storage> storage) {
  return typed_plan<S>(std::move(storage), []<class T>(const S& a, const Operands<T>& p, Stream&) {
    dispatch_offset(a.wide_offsets, [&](auto offset) {
      using Offset = typename decltype(offset)::type;
      parallel_ranges(a.rows, 1024, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          OneSum<T> runs, singles;
          add_runs<Offset>(runs, a, p.x, i, 0, TypeTag<T>());
          add_singles<Offset>(singles, a, p.x, i, 0, TypeTag<T>());
          p.put(i, runs.of + singles.of);
        }
      });
    });
  });
}

template <class S>
class RbpSpmmHostPlan final : public SpmmPlan {
 public:
  RbpSpmmHostPlan(std::shared_ptr<S> a, const RightHandSides& rhs) : SpmmPlan(a, rhs), a_(std::move(a)) {}

 private:
  void run(double alpha, const void* x, std::int64_t ldx, double beta, void* y, std::int64_t ldy, Stream&) const override {
    dispatch(a_->type, [&]<class Tag>(Tag) {
      using T = typename Tag::type;
      const ColumnsOfX<T> of_x{static_cast<const T*>(x), ldx};
      const ColumnsOfY<T> of_y(alpha, beta, y, ldy);
      dispatch_offset(a_->wide_offsets, [&](auto offset) {
        using Offset = typename decltype(offset)::type;
        parallel_ranges(a_->rows, 1024, [&](std::int64_t begin, std::int64_t end) {
          multiply_rows<Baseline, Offset>(*a_, begin, end, right_hand_sides().count, of_x, of_y);
        });
      });
    });
  }

  std::shared_ptr<S> a_;
};

}  // namespace

std::unique_ptr<Plan> make_rbp_csr_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return make_rbp_host<RbpCsrStorage>(std::move(storage));
}

std::unique_ptr<Plan> make_rbp_ell_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return make_rbp_host<RbpEllStorage>(std::move(storage));
}

std::unique_ptr<SpmmPlan> make_rbp_csr_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy&,
                                                 Stream&) {
  return std::make_unique<RbpSpmmHostPlan<RbpCsrStorage>>(std::static_pointer_cast<RbpCsrStorage>(std::move(storage)), rhs);
}

std::unique_ptr<SpmmPlan> make_rbp_ell_spmm_host(std::shared_ptr<Storage> storage, const RightHandSides& rhs, const Policy&,
                                                 Stream&) {
  return std::make_unique<RbpSpmmHostPlan<RbpEllStorage>>(std::static_pointer_cast<RbpEllStorage>(std::move(storage)), rhs);
}

}  // namespace shardmat
