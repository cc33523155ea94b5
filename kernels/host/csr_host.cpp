// CSR on host threads.
#include "kernels/cost_model.h"
#include "kernels/host/csr_rows.h"
#include "kernels/host/lanes.h"
#include "kernels/host/ranges.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class Set, class T, class Offset>
SHARDMAT_INLINE void multiply_rows(const CsrStorage& a, std::int64_t begin, std::int64_t end, const Operands<T>& v) {
  const Offset* row_ptr = a.row_ptr.as<Offset>();
  const std::int32_t* col_idx = a.col_idx.as<std::int32_t>();
  const T* values = a.values.as<T>();
  for (std::int64_t i = begin; i < end; ++i)
    put<Set>(v.y[i], v.alpha * sum_of_row<Set>(values + row_ptr[i], col_idx + row_ptr[i], row_ptr[i + 1] - row_ptr[i], v.x),
             v.beta);
}

}  // namespace

std::vector<Policy> csr_host_policies(const RowStatistics&) { return {Policy{}}; }

double csr_host_cost(ConversionInput& input, const Policy& layout) {
  // Each nonzero takes several instructions, as long as it takes to stream these bytes.
  constexpr std::int64_t kBytesOfInstructions = 12;
  const std::int64_t bytes = std::max(csr_bytes(input, layout), kBytesOfInstructions * input.rows().nnz);
  return effective_bytes(input, static_cast<double>(bytes), {.efficiency = 0.8});
}

std::unique_ptr<Plan> make_csr_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  const auto& a = static_cast<const CsrStorage&>(*storage);
  return typed_plan<CsrStorage>(storage, [starts = even_row_starts(a), isa = instruction_set()]<class T>(
                                             const CsrStorage& m, const Operands<T>& v, Stream&) {
    for_each_range(starts, isa, [&]<class Set>(Set, std::int64_t begin, std::int64_t end) SHARDMAT_INLINE_LAMBDA {
      if (m.wide_offsets) multiply_rows<Set, T, std::int64_t>(m, begin, end, v);
      else multiply_rows<Set, T, std::int32_t>(m, begin, end, v);
    });
  });
}

}  // namespace shardmat
