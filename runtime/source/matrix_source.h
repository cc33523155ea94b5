// Opens what a user names as a matrix: a shard file, a matrix file of another program, or a generator's specification.
//
// Ownership: a source shares its rows; matrices that were made from it may outlive it.
// Threads: one thread of each rank calls open_matrix(), which is collective. It reads with the
// threads of the context, or, given a communicator, with the calling thread's thread_count(). A source is used by one thread
// at a time.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "kernels/base/progress.h"
#include "partition/readers/input_choices.h"

namespace shardmat {

class Context;
class RowSource;
class ShardFile;

/// A matrix opened on all ranks.
struct MatrixSource {
  std::shared_ptr<RowSource> rows;
  const ShardFile* file = nullptr;  ///< points to `rows` if that is a shard file, else null
  std::string access;               ///< who reads or makes the rows, for the report
  /// True if each rank has only its own part of the rows, as of a file that was read into memory. Then `rows` can be used
  /// only on the ranks that opened the matrix, with the partition by OpenOptions::method.
  bool by_part = false;
};

struct OpenOptions {
  bool allow_nonfinite = false;  ///< accept NaN and infinity among the values
  std::string method = "nnz";    ///< partitioner: which rows each rank keeps of a file that is read into memory
  Progress progress{};           ///< of reading such a file
  bool transposed = false;       ///< gives Aᵀ instead of A, for the memory that runtime/source/transposed.h tells
  InputChoices choices{};        ///< what the user says about the file
  bool keep_unknowns = false;    ///< of a file that is read into memory: rank 0 keeps the list of unknowns
  /// Of a file that is read into memory: each rank keeps whole nodes of so many unknowns; 0: found in the pattern.
  std::int64_t node_block_size = 0;
};

/// How the source sorted the rows, for the report: "no", or the order in the file.
std::string order_text(const MatrixSource& source);

/// Opens a matrix: FILE, FILE:OBJECT or a generator. Shard files, Binsparse files, PETSc files and generators give any rows
/// to any rank. Other matrix files (.mtx, .npz …) are read into memory here, by read_on_ranks(). A file with no matrix or
/// with several matrices is refused; the error names the command that takes it. Collective; the same error on all ranks.
MatrixSource open_matrix(const std::string& argument, Communicator& communicator, const OpenOptions& options = {});
/// The same for the ranks of a context, with its host threads.
MatrixSource open_matrix(const std::string& argument, const Context& context, const OpenOptions& options = {});

}  // namespace shardmat
