#include "runtime/solvers/loop/random_entries.h"

#include <cmath>

#include "partition/generators/counter_random.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {
void fill_random(DistributedVector& vector, std::uint64_t seed, Entries entries, Stream& stream) {
  HostVector<double> values;
  values.reserve(static_cast<std::size_t>(vector.local_rows() * vector.columns()));
  const CounterRandom random(seed, 0);
  for (const std::int64_t row : vector.ids()) {
    const double entry = random.symmetric(row), size = entries == Entries::fractions ? 0.5 + std::abs(entry) / 2 : 1;
    values.insert(values.end(), static_cast<std::size_t>(vector.columns()), std::copysign(size, entry));
  }
  to_device(vector.view().data, values, vector.type(), stream);
}

}  // namespace shardmat
