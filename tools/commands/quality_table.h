// The table that says how good partitions are.
#pragma once

#include <span>
#include <string>

#include "partition/shard/shard_file.h"

namespace shardmat::tools {

/// One line a partition; empty for none.
std::string quality_table(std::span<const StoredPartition> partitions);

}  // namespace shardmat::tools
