// Folded rows on host threads: a row's pieces one after the other, added without a second step.
#include "kernels/base/parallel.h"
#include "kernels/formats/fold.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T, class Offset>
T row_sum(const FoldStorage& a, const T* x, std::int64_t row) {
  const Offset* fold_ptr = a.fold_ptr.as<Offset>();
  const std::int64_t pieces = a.pieces();
  T total = 0;
  for (std::int64_t piece = fold_ptr[row]; piece < fold_ptr[row + 1]; ++piece) {
    const std::int32_t* column = a.col_idx.as<std::int32_t>() + piece;
    const T* value = a.values.as<T>() + piece;
    T sum = 0;
    for (std::int64_t j = 0; j < a.width && column[j * pieces] >= 0; ++j) sum += value[j * pieces] * x[column[j * pieces]];
    total += sum;
  }
  return total;
}

}  // namespace

std::unique_ptr<Plan> make_fold_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return typed_plan<FoldStorage>(std::move(storage), []<class T>(const FoldStorage& a, const Operands<T>& p, Stream&) {
    const auto sum = a.wide_offsets ? row_sum<T, std::int64_t> : row_sum<T, std::int32_t>;
    parallel_ranges(a.rows, 1024, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) p.put(i, sum(a, p.x, i));
    });
  });
}

}  // namespace shardmat
