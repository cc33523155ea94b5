// Packets on host threads, row by row; x needs no staging where there are caches.
#include "kernels/base/parallel.h"
#include "kernels/formats/pkt.h"
#include "kernels/typed_plan.h"

namespace shardmat {
namespace {

template <class T, class Offset>
T row_sum(const PktStorage& a, const T* x, std::int64_t row) {
  const std::int64_t slice = row / kPktSlice;
  const Offset* slice_ptr = a.slice_ptr.as<Offset>();
  const std::uint16_t* local_columns = a.local_columns.as<std::uint16_t>();
  const T* local_values = a.local_values.as<T>();
  const std::int64_t first = a.window_first.as<std::int32_t>()[row / a.pattern->packet_rows];
  const std::int32_t* order = a.order.bytes() > 0 ? a.order.as<std::int32_t>() : nullptr;
  T sum = 0;
  for (std::int64_t k = slice_ptr[slice] + row % kPktSlice; k < slice_ptr[slice + 1]; k += kPktSlice)
    if (local_columns[k] != kPktPadding) {
      const std::int64_t column = first + local_columns[k];
      sum += local_values[k] * x[order == nullptr ? column : order[column]];
    }
  const Offset* rest_ptr = a.rest_ptr.as<Offset>();
  const std::int32_t* rest_columns = a.rest_columns.as<std::int32_t>();
  const T* rest_values = a.rest_values.as<T>();
  for (Offset k = rest_ptr[row]; k < rest_ptr[row + 1]; ++k) sum += rest_values[k] * x[rest_columns[k]];
  return sum;
}

}  // namespace

std::unique_ptr<Plan> make_pkt_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  return typed_plan<PktStorage>(std::move(storage), []<class T>(const PktStorage& a, const Operands<T>& p, Stream&) {
    const auto sum = a.wide_offsets ? row_sum<T, std::int64_t> : row_sum<T, std::int32_t>;
    const std::int32_t* order = a.order.bytes() > 0 ? a.order.as<std::int32_t>() : nullptr;
    parallel_ranges(a.rows, 1024, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) p.put(order == nullptr ? i : order[i], sum(a, p.x, i));
    });
  });
}

}  // namespace shardmat
