// Row block packing on host threads, row by row: runs first, then the single nonzeros.
#include "kernels/base/parallel.h"
#include "kernels/formats/rbp.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T, class Offset>
T sum_of_singles(const RbpStorage& a, const T* x, std::int64_t row) {
  const Offset* ptr = a.single_ptr.as<Offset>();
  const std::int32_t* columns = a.single_columns.as<std::int32_t>();
  const T* values = a.single_values.as<T>();
  T sum = 0;
  for (Offset k = ptr[row]; k < ptr[row + 1]; ++k) sum += values[k] * x[columns[k]];
  return sum;
}

template <class T, class Offset>
T sum_of_runs(const RbpCsrStorage& a, const T* x, std::int64_t row) {
  const Offset* bound_ptr = a.bound_ptr.as<Offset>();
  const std::int32_t* bounds = a.run_bounds.as<std::int32_t>();
  const T* value = a.run_values.as<T>() + a.value_ptr.as<Offset>()[row];
  T sum = 0;
  for (Offset run = bound_ptr[row]; run < bound_ptr[row + 1]; run += 2)
    for (std::int64_t column = bounds[run]; column <= bounds[run + 1]; ++column) sum += *value++ * x[column];
  return sum;
}

template <class T, class Offset>
T sum_of_runs(const RbpEllStorage& a, const T* x, std::int64_t row) {
  const std::int32_t* bounds = a.run_bounds.as<std::int32_t>() + row;
  const T* value = a.run_values.as<T>() + row;
  T sum = 0;
  for (std::int64_t c = 0; c < a.runs->statistics.max_bounds; c += 2) {
    const std::int64_t first = bounds[c * a.rows], last = bounds[(c + 1) * a.rows];
    if (first == last) break;  // padding: a run has two columns or more
    for (std::int64_t column = first; column <= last; ++column, value += a.rows) sum += *value * x[column];
  }
  return sum;
}

template <class S>
std::unique_ptr<Plan> make_rbp_host(std::shared_ptr<Storage> storage) {
  return typed_plan<S>(std::move(storage), []<class T>(const S& a, const Operands<T>& p, Stream&) {
    dispatch_offset(a.wide_offsets, [&](auto offset) {
      using Offset = typename decltype(offset)::type;
      parallel_ranges(a.rows, 1024, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          p.put(i, sum_of_runs<T, Offset>(a, p.x, i) + sum_of_singles<T, Offset>(a, p.x, i));
      });
    });
  });
}

}  // namespace

std::unique_ptr<Plan> make_rbp_csr_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return make_rbp_host<RbpCsrStorage>(std::move(storage));
}

std::unique_ptr<Plan> make_rbp_ell_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return make_rbp_host<RbpEllStorage>(std::move(storage));
}

}  // namespace shardmat
