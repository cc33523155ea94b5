// A matrix file of another program, read by all ranks into memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "kernels/base/progress.h"
#include "partition/row_source.h"

namespace shardmat {

struct ReadOnRanksOptions {
  bool allow_nonfinite = false;  ///< accept NaN and infinity among the values
  std::string method = "nnz";    ///< partitioner: which rows each rank keeps
  Progress progress;
  /// Bytes of text that all ranks together parse between two exchanges of entries.
  std::int64_t round_bytes = 64 << 20;
};

/// What the ranks keep of the matrix, and who read the file, for the report: "2 ranks" or "rank 0 for 2 ranks".
struct ReadMatrix {
  std::unique_ptr<RowSource> rows;
  std::string readers;
};

/// Collective. Reads the file with the reader that accepts it. Each rank keeps its own part of make_partition(method, …);
/// see make_kept_source() for the rows that each rank may ask for. With one rank the source has all rows.
///
/// Plain Matrix Market text is parsed by all ranks, a share of the bytes each; .mtx.gz and .npz are read by rank 0, which
/// deals the entries out. The file is read twice: once to count rows and divide them, once to send entries to the ranks that
/// keep their rows.
///
/// Memory of a rank, checked before it is taken: 16 bytes a nonzero and 16 bytes a row of its part (24 bytes a nonzero for
/// a moment, if duplicates were summed and the parts change by that), 16 bytes a row of its even share, and the messages of
/// one round. Rank 0 also takes 16 bytes for each row of the whole matrix, and for .npz 8 bytes a row (CSC: a column).
///
/// The rows have the same bits as those of read_matrix(). Throws on all ranks, Error(input) in the words of read_matrix().
ReadMatrix read_on_ranks(const std::filesystem::path& path, const ReadOnRanksOptions& options, Communicator& communicator);

}  // namespace shardmat
