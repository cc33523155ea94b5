// The tables of a shard file, read and checked without reading the matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "partition/hdf5/file.h"
#include "partition/hdf5/shard_file_format.h"
#include "partition/shard/shard_file.h"

namespace shardmat {

struct ShardTables {
  std::int64_t rows = 0, cols = 0, nnz = 0;
  bool plain = false;  ///< no /shardmat: only the sizes are known
  bool permuted = false;
  RowOrder order = RowOrder::as_source;
  bool sort_local = false;
  std::int64_t node_block_size = 0;  ///< 0: the file does not say
  bool allow_nonfinite = false;
  std::string how, source, source_checksum;
  std::vector<std::int64_t> block_rows{0};
  std::vector<shard_format::BlockChecksums> checksums;
  std::uint64_t permutation_checksum = 0;            ///< 0 unless permuted
  std::vector<std::uint64_t> permutation_checksums;  ///< of each block; empty if the file has none
  bool has_unknowns = false;
  std::uint64_t unknowns_checksum = 0;  ///< 0 without unknowns
  std::uint64_t fingerprint = 0;        ///< 0 if plain
  std::vector<StoredPartition> partitions;
};

/// Reads and cross-checks everything except the matrix; of the matrix, only the first and the last row pointer are read.
/// Throws Error(input) with file, object and remedy.
ShardTables read_shard_tables(const Hdf5File& file);

}  // namespace shardmat
