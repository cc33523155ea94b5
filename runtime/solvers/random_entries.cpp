#include "runtime/solvers/random_entries.h"

#include "runtime/matrix/vectors.h"

namespace shardmat {
namespace {

/// Bits that look random, a function of row and seed (the finaliser of MurmurHash3).
std::uint64_t scatter(std::uint64_t row, std::uint64_t seed) {
  std::uint64_t h = row + seed * 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
  h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
  return h ^ (h >> 33);
}

}  // namespace

void fill_random(DistributedVector& vector, std::uint64_t seed, Entries entries, Stream& stream) {
  HostVector<double> values;
  values.reserve(static_cast<std::size_t>(vector.local_rows() * vector.columns()));
  for (const std::int64_t row : vector.ids()) {
    const std::uint64_t bits = scatter(static_cast<std::uint64_t>(row), seed);
    const double size = entries == Entries::fractions ? 0.5 + static_cast<double>(bits >> 12) * 0x1p-53 : 1;
    values.insert(values.end(), static_cast<std::size_t>(vector.columns()), (bits & 1) != 0 ? size : -size);
  }
  to_device(vector.view().data, values, vector.type(), stream);
}

}  // namespace shardmat
