#include "kernels/formats/jds.h"
#include "kernels/host/row_blocks.h"

namespace shardmat {

std::unique_ptr<Plan> make_jds_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return typed_plan<JdsStorage>(std::move(storage), []<class T>(const JdsStorage& a, const Operands<T>& v, Stream&) {
    const std::int64_t* starts = a.starts.as<std::int64_t>();
    const std::int32_t* col_idx = a.col_idx.as<std::int32_t>();
    const T* values = a.values.as<T>();
    multiply_row_blocks(a.rows, v, a.row_index.as<std::int32_t>(), [&](std::int64_t begin, std::int64_t end, T* sums) {
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t k = starts[i]; k < starts[i + 1]; ++k) sums[i - begin] += values[k] * v.x[col_idx[k]];
    });
  });
}

std::unique_ptr<Plan> make_jds_t_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return typed_plan<JdsStorage>(std::move(storage), []<class T>(const JdsStorage& a, const Operands<T>& v, Stream&) {
    const std::int64_t* starts = a.starts.as<std::int64_t>();
    multiply_row_blocks(a.rows, v, a.row_index.as<std::int32_t>(), [&](std::int64_t begin, std::int64_t end, T* sums) {
      for (std::int64_t d = 0; d < a.diagonals && begin < starts[d + 1] - starts[d]; ++d) {
        const std::int32_t* col_idx = a.col_idx.as<std::int32_t>() + starts[d];
        const T* values = a.values.as<T>() + starts[d];
        for (std::int64_t i = begin; i < std::min(end, starts[d + 1] - starts[d]); ++i)
          sums[i - begin] += values[i] * v.x[col_idx[i]];
      }
    });
  });
}

}  // namespace shardmat
