#include "runtime/matrix/named_rows.h"

#include <algorithm>
#include <vector>

#include "kernels/base/memory_limits.h"

namespace shardmat {

HostVector<std::int64_t> named_on_all_ranks(std::span<const std::int64_t> rows, Communicator& ranks) {
  const std::vector<std::int64_t> counts = ranks.all_gather(std::ssize(rows));
  const auto slot = static_cast<std::size_t>(*std::max_element(counts.begin(), counts.end()));
  HostVector<std::int64_t> slots;
  ranks.run_agreed([&] {
    require_host_memory(static_cast<std::int64_t>(8 * slot * counts.size()), "the rows that all ranks name");
    slots.resize(slot * counts.size());
  });
  std::copy(rows.begin(), rows.end(), slots.begin() + static_cast<std::ptrdiff_t>(slot) * ranks.rank());
  ranks.all_gather_slots(slots.data(), slot * sizeof(std::int64_t));
  auto end = slots.begin();
  for (std::size_t p = 0; p < counts.size(); ++p)
    end = std::copy_n(slots.begin() + static_cast<std::ptrdiff_t>(p * slot), counts[p], end);
  std::sort(slots.begin(), end);
  slots.erase(std::unique(slots.begin(), end), slots.end());
  return slots;
}

}  // namespace shardmat
