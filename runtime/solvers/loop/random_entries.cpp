#include "runtime/solvers/loop/random_entries.h"

#include <algorithm>
#include <cmath>

#include "comm/communicator.h"
#include "kernels/base/parallel.h"
#include "kernels/random_entries.h"
#include "partition/generators/counter_random.h"
#include "runtime/context/context.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {

void fill_random(DistributedVector& vector, std::uint64_t seed, Entries entries, Stream& stream,
                 const DistributedVector* times) {
  const std::int64_t columns = vector.columns();
  const CounterRandom random(seed, 0);
  const RowMap& map = *vector.map();
  const auto rank = static_cast<std::size_t>(vector.context().communicator().rank());
  const std::int64_t first = map.starts()[rank], rows = vector.local_rows();
  if (stream.device().backend == Backend::cuda && map.starts()[rank + 1] - first == rows && rows > 0 &&
      !is_half(vector.type()))
    return fill_random_entries(vector.type(), random.key(), first, rows, columns, entries == Entries::fractions,
                               times == nullptr ? nullptr : times->view().data, vector.view().data, stream);
  HostVector<double> values(static_cast<std::size_t>(vector.local_rows() * columns));
  const auto& ids = vector.ids();
  parallel_ranges(vector.local_rows(), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const double entry = random.symmetric(ids[static_cast<std::size_t>(i)]),
                   size = entries == Entries::fractions ? 0.5 + std::abs(entry) / 2 : 1;
      std::fill_n(values.data() + i * columns, columns, std::copysign(size, entry));
    }
  });
  if (times != nullptr) {
    const HostVector<double> factors = to_host(times->view().data, std::ssize(values), vector.type(), stream);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= factors[i];
  }
  to_device(vector.view().data, values, vector.type(), stream);
}

}  // namespace shardmat
