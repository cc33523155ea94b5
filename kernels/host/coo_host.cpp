// COO on host threads: a part of the entries ends where the row changes, so that no two threads add to one entry of y.
#include <algorithm>

#include "kernels/base/parallel.h"
#include "kernels/formats/coo.h"
#include "kernels/host/parts_host.h"

namespace shardmat {

std::vector<std::int64_t> cut_between_rows(const CooEntries& a) {
  const int threads = threads_for(a.count);
  const std::int64_t parts = threads == 1 ? 1 : std::clamp<std::int64_t>(a.count / 4096, 1, std::int64_t{8} * threads);
  const std::int32_t* row = a.row.as<std::int32_t>();
  std::vector<std::int64_t> cuts{0};
  for (std::int64_t part = 1; part < parts; ++part) {
    const std::int32_t* cut = row + a.count / parts * part;
    cuts.push_back(std::upper_bound(cut, row + a.count, *cut) - row);
  }
  cuts.push_back(a.count);
  return cuts;
}

template <class T>
void add_coo_host(const CooEntries& a, const std::vector<std::int64_t>& cuts, const Operands<T>& v) {
  const std::int32_t* row = a.row.as<std::int32_t>();
  const std::int32_t* col_idx = a.col_idx.as<std::int32_t>();
  const T* values = a.values.as<T>();
  parallel_tasks(static_cast<std::int64_t>(cuts.size()) - 1, [&](std::int64_t part) {
    const std::int64_t end = cuts[static_cast<std::size_t>(part) + 1];
    for (std::int64_t k = cuts[static_cast<std::size_t>(part)]; k < end;) {
      const std::int32_t of_row = row[k];
      T sum = 0;
      for (; k < end && row[k] == of_row; ++k) sum += values[k] * v.x[col_idx[k]];
      v.y[of_row] += v.alpha * sum;
    }
  });
}

template void add_coo_host(const CooEntries&, const std::vector<std::int64_t>&, const Operands<float>&);
template void add_coo_host(const CooEntries&, const std::vector<std::int64_t>&, const Operands<double>&);

std::unique_ptr<Plan> make_coo_host(std::shared_ptr<Storage> storage, const Policy&, Stream&) {
  auto cuts = cut_between_rows(static_cast<const CooStorage&>(*storage).entries);
  return typed_plan<CooStorage>(std::move(storage),
                                [cuts = std::move(cuts)]<class T>(const CooStorage& a, const Operands<T>& v, Stream&) {
                                  parallel_ranges(a.rows, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
                                    for (std::int64_t i = begin; i < end; ++i) v.put(i, 0);
                                  });
                                  add_coo_host(a.entries, cuts, v);
                                });
}

}  // namespace shardmat
