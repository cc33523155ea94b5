#include "runtime/solvers/loop/random_entries.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/parallel.h"
#include "partition/generators/counter_random.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {
void fill_random(DistributedVector& vector, std::uint64_t seed, Entries entries, Stream& stream) {
  const std::int64_t columns = vector.columns();
  HostVector<double> values(static_cast<std::size_t>(vector.local_rows() * columns));
  const CounterRandom random(seed, 0);
  const auto& ids = vector.ids();
  parallel_ranges(vector.local_rows(), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const double entry = random.symmetric(ids[static_cast<std::size_t>(i)]),
                   size = entries == Entries::fractions ? 0.5 + std::abs(entry) / 2 : 1;
      std::fill_n(values.data() + i * columns, columns, std::copysign(size, entry));
    }
  });
  to_device(vector.view().data, values, vector.type(), stream);
}

}  // namespace shardmat
