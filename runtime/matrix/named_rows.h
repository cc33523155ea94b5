// Rows that several ranks name, known to all of them.
#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.h"
#include "kernels/base/host_vector.h"

namespace shardmat {

/// The rows that any rank names, sorted, each once. Takes 8 bytes for the most rows that a rank names times the ranks.
/// Collective; the same error on all ranks.
HostVector<std::int64_t> named_on_all_ranks(std::span<const std::int64_t> rows, Communicator& ranks);

}  // namespace shardmat
