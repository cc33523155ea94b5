#include "kernels/formats/ell.h"
#include "kernels/host/parts_host.h"
#include "kernels/host/row_blocks.h"

namespace shardmat {

template <class T>
void multiply_ell_host(std::int64_t rows, const EllArrays& a, const Operands<T>& v) {
  multiply_row_blocks(rows, v, nullptr, [&](std::int64_t begin, std::int64_t end, T* sums) {
    for (std::int64_t k = 0; k < a.width; ++k) {
      const std::int32_t* col_idx = a.col_idx.as<std::int32_t>() + k * rows;
      const T* values = a.values.as<T>() + k * rows;
      for (std::int64_t i = begin; i < end; ++i)
        if (col_idx[i] >= 0) sums[i - begin] += values[i] * v.x[col_idx[i]];
    }
  });
}

template void multiply_ell_host(std::int64_t, const EllArrays&, const Operands<float>&);
template void multiply_ell_host(std::int64_t, const EllArrays&, const Operands<double>&);

std::unique_ptr<Plan> make_ell_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return typed_plan<EllStorage>(std::move(storage), []<class T>(const EllStorage& a, const Operands<T>& v, Stream&) {
    multiply_ell_host(a.rows, a.ell, v);
  });
}

std::unique_ptr<Plan> make_ell_r_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return typed_plan<EllStorage>(std::move(storage), []<class T>(const EllStorage& a, const Operands<T>& v, Stream&) {
    const std::int32_t* lengths = a.row_lengths.as<std::int32_t>();
    multiply_row_blocks(a.rows, v, nullptr, [&](std::int64_t begin, std::int64_t end, T* sums) {
      const std::int32_t longest = *std::max_element(lengths + begin, lengths + end);
      for (std::int64_t k = 0; k < longest; ++k) {
        const std::int32_t* col_idx = a.ell.col_idx.as<std::int32_t>() + k * a.rows;
        const T* values = a.ell.values.as<T>() + k * a.rows;
        for (std::int64_t i = begin; i < end; ++i)
          if (k < lengths[i]) sums[i - begin] += values[i] * v.x[col_idx[i]];
      }
    });
  });
}

}  // namespace shardmat
