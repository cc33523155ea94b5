// The transposed product of CSR on host threads.
#include "kernels/formats/csr.h"
#include "kernels/host/csr_rows.h"
#include "kernels/host/scatter_plan.h"
#include "kernels/host/scatter_rows.h"

namespace shardmat {
namespace {

struct ScatterCsr {
  static constexpr std::string_view name = "rows of csr, added to columns";

  template <class Set, class T>
  SHARDMAT_INLINE static void one(const CsrStorage& a, std::int64_t begin, std::int64_t end, const Scatter<T>& to) {
    for_each_row<T>(a, begin, end,
                    [&](std::int64_t row, const T* values, const std::int32_t* columns, std::int64_t count)
                        SHARDMAT_INLINE_LAMBDA {
                          prefetch_row(values, columns);
                          scatter_row<Set>(values, columns, count, row, to);
                        });
  }
  template <class Set, class T>
  SHARDMAT_INLINE static void several(const CsrStorage& a, std::int64_t begin, std::int64_t end, const Scatter<T>& to,
                                      std::int64_t right_hand_sides) {
    for_each_row<T>(a, begin, end,
                    [&](std::int64_t row, const T* values, const std::int32_t* columns, std::int64_t count)
                        SHARDMAT_INLINE_LAMBDA { scatter_row<Set>(values, columns, count, row, to, right_hand_sides); });
  }

 private:
  template <class T, class Body>
  SHARDMAT_INLINE static void for_each_row(const CsrStorage& a, std::int64_t begin, std::int64_t end, const Body& body) {
    const T* const values = a.values.as<T>();
    const std::int32_t* const columns = a.col_idx.as<std::int32_t>();
    std::int64_t first = offset_of_row(a, begin);
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t last = offset_of_row(a, row + 1);
      body(row, values + first, columns + first, last - first);
      first = last;
    }
  }
};

}  // namespace

std::unique_ptr<TransposePlan> make_csr_transpose_host(std::shared_ptr<const Storage> storage, const TransposeShape& shape) {
  auto a = std::static_pointer_cast<const CsrStorage>(std::move(storage));
  auto ranges = windowed_ranges(even_row_starts(*a), a->nnz, shape.entries, [&](std::int64_t begin, std::int64_t end) {
    ColumnSpan span;
    const std::int32_t* const columns = a->col_idx.as<std::int32_t>();
    for (std::int64_t k = offset_of_row(*a, begin); k < offset_of_row(*a, end); ++k) span.add(columns[k]);
    return span;
  });
  return std::make_unique<ScatterPlan<CsrStorage, ScatterCsr>>(std::move(a), shape, std::move(ranges));
}

}  // namespace shardmat
