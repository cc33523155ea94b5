#include "kernels/formats/dia.h"
#include "kernels/host/row_blocks.h"

namespace shardmat {

std::unique_ptr<Plan> make_dia_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return typed_plan<DiaStorage>(std::move(storage), []<class T>(const DiaStorage& a, const Operands<T>& v, Stream&) {
    const std::int64_t* offsets = a.offsets.as<std::int64_t>();
    multiply_row_blocks(a.rows, v, nullptr, [&](std::int64_t begin, std::int64_t end, T* sums) {
      for (std::int64_t d = 0; d < a.diagonals; ++d) {
        const T* values = a.values.as<T>() + d * a.rows;
        const std::int64_t first = std::max(begin, -offsets[d]), last = std::min(end, a.cols - offsets[d]);
        for (std::int64_t i = first; i < last; ++i) sums[i - begin] += values[i] * v.x[i + offsets[d]];
      }
    });
  });
}

}  // namespace shardmat
