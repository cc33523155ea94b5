// The shard file: a Binsparse CSR matrix in HDF5 with partition tables beside it. Format, names and versions are described
// at the top of shard_file.cpp and in one place only.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/progress.h"
#include "partition/partitioner.h"
#include "partition/row_source.h"

namespace shardmat {

/// A stored partition with its quality figures.
struct StoredPartition {
  Partition partition;
  PartitionQuality quality;
};

struct WriteOptions {
  std::string how;             ///< how the matrix was made, e.g. the command line; stored for people
  std::vector<int> parts;      ///< partition tables to store
  std::string method = "nnz";  ///< partitioner for all of them
  bool sort_global = false;    ///< store rows by descending length with the permutation (square: columns too)
  bool allow_nonfinite = false;
  Progress progress;
};

/// Writes `source` to `path` (temporary name beside it, flushed to disk, renamed), streaming through bounded memory.
/// Returns the stored partitions in the order of options.parts. Throws Error(resources) when the disk is full or not
/// writable; then nothing is left behind.
std::vector<StoredPartition> write_shard_file(const std::filesystem::path& path, const RowSource& source,
                                              const WriteOptions& options);

/// One shard file opened for reading. Also a RowSource of the *stored* order.
class ShardFile : public RowSource {
 public:
  /// How ranks share the file: one serial HDF5 handle each, or collective parallel HDF5 on `communicator`.
  enum class Access { serial, parallel };

  /// Opens for one process. Throws Error(input) naming file and remedy if it is no shard file, is truncated, is of a newer
  /// version, or its tables contradict each other (sizes, partition of another matrix).
  static std::unique_ptr<ShardFile> open(const std::filesystem::path& path);
  /// Opens on all ranks of a communicator. With Access::parallel the calls of read_rows and the like stay independent
  /// (no call of this class is collective but open and the destructor).
  static std::unique_ptr<ShardFile> open(const std::filesystem::path& path, MPI_Comm communicator, Access access);

  /// True if the HDF5 library this was built with has MPI support.
  static bool parallel_available();

  ~ShardFile() override;

  std::int64_t rows() const override;
  std::int64_t cols() const override;
  std::int64_t nnz() const;
  std::string name() const override;
  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override;
  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override;

  std::string how() const;                           ///< how the file was made
  std::uint64_t fingerprint() const;                 ///< hash over sizes and block checksums: names the matrix for caches
  bool sorted_global() const;                        ///< rows are stored in another order than the original's
  /// Entries [begin, end) of the permutation stored row -> original row; the identity if none is stored.
  HostVector<std::int64_t> permutation(std::int64_t begin, std::int64_t end) const;
  const std::vector<StoredPartition>& partitions() const;  ///< as stored, ascending parts

  /// Checks everything: structure, tables, permutation, every block checksum, validity of every row.
  /// Throws Error(input) naming the first thing that is wrong (dataset and row range).
  void verify(const Progress& progress = {}) const;

 private:
  struct Impl;
  explicit ShardFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardmat
