// Orders of the rows of a rank.
#pragma once

#include <cstdint>

#include "kernels/base/host_vector.h"
#include "kernels/matrix/compact_csr.h"

namespace shardmat {

/// Entry i becomes what was entry order[i].
HostVector<std::int64_t> in_order(const HostVector<std::int64_t>& from, const HostVector<std::int64_t>& order);

/// Row i becomes what was row order[i], in place. The first `kept` rows only move towards the beginning, in their order:
/// they are not copied aside, and cost no memory. Throws Error(resources) if the others do not fit in memory a second time.
void reorder_rows(CompactCsr& part, const HostVector<std::int64_t>& order, std::int64_t kept = 0);

}  // namespace shardmat
