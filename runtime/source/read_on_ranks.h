// A matrix file of another program, read by all ranks into memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "kernels/base/progress.h"
#include "partition/readers/input_choices.h"
#include "partition/source/row_source.h"

namespace shardmat {

struct ReadOnRanksOptions {
  bool allow_nonfinite = false;  ///< accept NaN and infinity among the values
  std::string method = "nnz";    ///< partitioner: which rows each rank keeps
  Progress progress;
  /// Bytes of text that all ranks together parse between two exchanges of entries.
  std::int64_t round_bytes = 64 << 20;
  InputChoices choices{};            ///< what the user says about the file
  bool keep_unknowns = false;        ///< rank 0 keeps the list of unknowns, 16 bytes a row of the whole matrix
  std::int64_t node_block_size = 0;  ///< each rank keeps whole nodes of so many unknowns; 0: found in the pattern
};

struct ReadMatrix {
  std::unique_ptr<RowSource> rows;  ///< this rank's part
  std::string readers;              ///< who read the file, for the report: "2 ranks" or "rank 0 for 2 ranks"
};

/// Collective. Reads the file with the reader that accepts it. Each rank keeps its own part of make_partition(method, …);
/// make_kept_source() says which rows a rank may read from it. With one rank the source has all rows.
///
/// Plain Matrix Market text is parsed by all ranks, an equal share of the bytes each. Rank 0 reads .mtx.gz and .npz and
/// sends the entries to the other ranks. The file is read twice: first to count and partition the rows, then to send each
/// entry to the rank that keeps its row.
///
/// Memory of a rank, checked before it is allocated: 16 bytes a nonzero and 16 bytes a row of its part (24 bytes a
/// nonzero for a short time, if summing duplicates or keeping nodes whole moves rows), 16 bytes a row of its even share,
/// and the messages of one round. Rank 0 also takes 16 bytes for each row of the whole matrix, and for .npz 8 bytes a
/// row (CSC: a column).
///
/// The rows are bit-identical to those of read_matrix(). Throws the same error on all ranks: Error(input) with the message
/// of read_matrix().
ReadMatrix read_on_ranks(const std::filesystem::path& path, const ReadOnRanksOptions& options, Communicator& communicator);

}  // namespace shardmat
