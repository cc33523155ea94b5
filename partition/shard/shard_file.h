// The shard file: a Binsparse CSR matrix in HDF5 with partition tables. Only shard_file_format.h describes its format, names
// and versions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/progress.h"
#include "partition/source/partitioner.h"
#include "partition/source/row_source.h"

namespace shardmat {

/// A stored partition with its quality figures.
struct StoredPartition {
  Partition partition;
  PartitionQuality quality;
};

struct WriteOptions {
  std::string how;                       ///< how the matrix was made, e.g. the command line; stored for people
  std::string source_checksum;           ///< of the file that the matrix was read from, e.g. "xxh64:44bc2cf5ad770999";
                                         ///< may be empty
  std::vector<int> parts;                ///< partition tables to store
  std::vector<Partition> partitions;     ///< further partitions, stored as they are
  std::string method = "nnz";            ///< partitioner for `parts`
  RowOrder order = RowOrder::as_source;  ///< any other order is stored with the permutation
  bool sort_local = false;               ///< ranks sort their part by length when they load it; the stored order stays
  bool allow_nonfinite = false;          ///< accept NaN and infinity; stored in the file
  std::int64_t node_block_size = 0;      ///< unknowns of a node, stored; 0: as the source says, else found in the pattern
  const NodeFacts* nodes = nullptr;      ///< what is stored of nodes; null: what the source knows
  Progress progress;                     ///< nonzeros written
};

/// Writes `source` to `path` (to a temporary file that is flushed to disk and renamed), in bounded memory. Returns the
/// stored partitions in the order of options.parts. Throws Error(resources) if the disk is full or not writable; then no
/// file is left behind.
std::vector<StoredPartition> write_shard_file(const std::filesystem::path& path, const RowSource& source,
                                              const WriteOptions& options);

/// A shard file opened for reading. It is a RowSource in the *stored* order; messages have stored row numbers. Rows are
/// checked when they are read: pointers, columns, finite values, and once the checksum of each block, so that damaged data
/// is never used. The permutation is checked, too (if the file has no checksums of its blocks: only when it is read as a
/// whole). Used by one thread at a time.
class ShardFile : public RowSource {
 public:
  /// Opens the file for reading; any number of processes may do so. Throws Error(input) with file and remedy if it is no
  /// shard file, is truncated, has a newer version, or has contradictory tables (sizes, partition of another matrix).
  /// Reading refuses values that are not finite, unless the file allows them or `allow_nonfinite` is set.
  static std::unique_ptr<ShardFile> open(const std::filesystem::path& path, bool allow_nonfinite = false);
  /// The HDF5 objects that are read, for describing the file (hdf5/describe.h).
  static std::vector<std::string> objects();

  ~ShardFile() override;

  std::int64_t rows() const override;
  std::int64_t cols() const override;
  std::int64_t nnz() const;
  std::string name() const override;  ///< the path
  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override;
  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override;
  /// From a file that is not in chunks, each thread reads and checks ranges of rows, straight into the target if the rows
  /// have the order of the file.
  void read_rows_into(std::int64_t begin, const RowTarget& target, const Progress& progress) const override;
  std::int64_t best_end(std::int64_t begin, std::int64_t end) const override;  ///< the end of a block with a checksum
  std::int64_t node_block_size() const override;
  RowOrder row_order() const override;
  HostVector<std::int64_t> permutation(std::int64_t begin, std::int64_t end) const override;
  /// Reads and checks the list each time: takes 16 bytes of memory a row.
  std::shared_ptr<const UnknownList> unknowns() const override;
  HostVector<double> coordinates(std::int64_t begin, std::int64_t end) const override;
  HostVector<double> axes(std::int64_t begin, std::int64_t end) const override;
  bool has_axes() const override;
  std::int64_t placed_nodes() const override;
  /// Reads and checks the whole list each time.
  std::vector<MidEdge> mid_edges() const override;
  int near_null_count() const override;
  bool knows_nodes() const override;
  HostVector<double> near_null_vectors(std::int64_t begin, std::int64_t end) const override;

  /// Turns off the check of values, for a caller that replaces them or must use them as they are. Pointers, columns and
  /// permutation are still checked.
  void leave_values_unchecked();

  bool plain_binsparse() const;         ///< written by another program: no tables, no checksums, not permuted
  std::string how() const;              ///< how the file was made; empty for a plain Binsparse file, like the next two
  std::string source() const;           ///< name of the source from which it was written
  std::string source_checksum() const;  ///< may be empty
  bool wants_local_sort() const;        ///< true if written with sort_local
  bool allows_nonfinite() const;        ///< true if NaN and infinity are accepted
  /// Identifies the content, for caches: a hash of sizes, permutation and block checksums. For a plain Binsparse file, which
  /// has no checksums: a hash of sizes and row pointers.
  std::uint64_t fingerprint() const;
  const std::vector<StoredPartition>& partitions() const;  ///< as stored, by method, then ascending parts

  /// Reads and checks everything: structure, tables, permutation, what is known of nodes, every block checksum, every row.
  /// Throws Error(input) for the first fault, naming dataset and row range.
  void verify(const Progress& progress = {}) const;

 private:
  struct Impl;
  explicit ShardFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardmat
