// CRS as crs_paper on a GPU: NT partial sums a row, added pairwise. Host threads take rows of equal nonzeros.
#include <algorithm>

#include "kernels/base/parallel.h"
#include "kernels/formats/crs_paper.h"
#include "kernels/host/csr_rows.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

constexpr int kMostThreads = 32;

template <class T, class Offset>
void multiply_rows(const CsrStorage& a, std::int64_t begin, std::int64_t end, int threads, const Operands<T>& v) {
  const Offset* row_ptr = a.row_ptr.as<Offset>();
  const std::int32_t* col_idx = a.col_idx.as<std::int32_t>();
  const T* values = a.values.as<T>();
  T partial[kMostThreads];
  for (std::int64_t i = begin; i < end; ++i) {
    std::fill_n(partial, threads, T(0));
    for (Offset k = row_ptr[i]; k < row_ptr[i + 1]; ++k)
      partial[(k - row_ptr[i]) & (threads - 1)] += values[k] * v.x[col_idx[k]];
    for (int half = threads / 2; half > 0; half /= 2)
      for (int lane = 0; lane < half; ++lane) partial[lane] += partial[lane + half];
    v.put(i, partial[0]);
  }
}

}  // namespace

std::unique_ptr<Plan> make_crs_paper_host(std::shared_ptr<Storage> storage, const Policy& policy, Stream&) {
  const auto& a = static_cast<const CsrStorage&>(*storage);
  return typed_plan<CsrStorage>(storage, [threads = crs_paper_threads(policy), starts = even_row_starts(a)]<class T>(
                                             const CsrStorage& m, const Operands<T>& v, Stream&) {
    parallel_tasks(std::ssize(starts) - 1, [&](std::int64_t t) {
      const std::int64_t begin = starts[static_cast<std::size_t>(t)], end = starts[static_cast<std::size_t>(t) + 1];
      if (m.wide_offsets) multiply_rows<T, std::int64_t>(m, begin, end, threads, v);
      else multiply_rows<T, std::int32_t>(m, begin, end, threads, v);
    });
  });
}

}  // namespace shardmat
