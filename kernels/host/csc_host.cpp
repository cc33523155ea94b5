// CSC on host threads. Columns of different threads would meet in y, so each thread takes a range of rows, in which it finds
// its part of every column by binary search: y is then summed in the order of the columns, whoever does it.
#include <algorithm>

#include "kernels/base/parallel.h"
#include "kernels/formats/csc.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T>
void multiply_rows(const CscStorage& a, std::int64_t begin, std::int64_t end, const Operands<T>& v) {
  const std::int64_t* col_ptr = a.col_ptr.as<std::int64_t>();
  const std::int32_t* row_idx = a.row_idx.as<std::int32_t>();
  const T* values = a.values.as<T>();
  for (std::int64_t i = begin; i < end; ++i) v.put(i, 0);
  for (std::int64_t j = 0; j < a.cols; ++j) {
    const T scaled = v.alpha * v.x[j];
    const std::int32_t* last = row_idx + col_ptr[j + 1];
    for (const std::int32_t* row = std::lower_bound(row_idx + col_ptr[j], last, begin); row < last && *row < end; ++row)
      v.y[*row] += values[row - row_idx] * scaled;
  }
}

}  // namespace

std::unique_ptr<Plan> make_csc_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  const std::int64_t parts =
      std::clamp<std::int64_t>((storage->nnz + storage->rows) / 4096, 1, threads_for(storage->nnz + storage->rows));
  return typed_plan<CscStorage>(std::move(storage), [parts]<class T>(const CscStorage& a, const Operands<T>& v, Stream&) {
    parallel_tasks(parts,
                   [&](std::int64_t part) { multiply_rows(a, a.rows * part / parts, a.rows * (part + 1) / parts, v); });
  });
}

}  // namespace shardmat
