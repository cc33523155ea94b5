// The shard file: a Binsparse CSR matrix in HDF5 with partition tables beside it. Format, names and versions
// are described at the top of shard_file_format.h and in one place only.
#pragma once

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
  std::string how;                       ///< how the matrix was made, e.g. the command line; stored for people
  std::string source_checksum;           ///< of the file that the matrix was read from, e.g. "xxh64:44bc2cf5ad770999";
                                         ///< may be empty
  std::vector<int> parts;                ///< partition tables to store
  std::vector<Partition> partitions;     ///< more of them, stored as they are
  std::string method = "nnz";            ///< partitioner for all of them
  RowOrder order = RowOrder::as_source;  ///< any other is stored with the permutation
  bool sort_local = false;               ///< ask ranks to sort their part by length when they load it; the order here stays
  bool allow_nonfinite = false;          ///< accept NaN and infinity; the file remembers
  Progress progress;                     ///< nonzeros written
};

/// Writes `source` to `path` (temporary name beside it, flushed to disk, renamed), streaming through bounded
/// memory. Returns the stored partitions in the order of options.parts. Throws Error(resources) when the disk
/// is full or not writable; then nothing is left behind.
std::vector<StoredPartition> write_shard_file(const std::filesystem::path& path, const RowSource& source,
                                              const WriteOptions& options);

/// One shard file opened for reading. Also a RowSource of the *stored* order; row numbers in messages are the
/// stored ones. Rows are checked as they are read: pointers, columns, finite values, and the checksums of the
/// blocks that they lie in, each once, so that damage shows before anything is made of it (so is the permutation;
/// of files without checksums of its blocks only if it is read whole). One thread at a time.
class ShardFile : public RowSource {
 public:
  /// Opens for reading; any number of processes may. Throws Error(input) naming file and remedy if it is no shard file, is
  /// truncated, is of a newer version, or its tables contradict each other (sizes, partition of another matrix). Values that
  /// are not finite are refused on reading unless the file was written with them or `allow_nonfinite` is set.
  static std::unique_ptr<ShardFile> open(const std::filesystem::path& path, bool allow_nonfinite = false);
  /// What is read of the HDF5 file, for describing it (hdf5/describe.h).
  static std::vector<std::string> objects();

  ~ShardFile() override;

  std::int64_t rows() const override;
  std::int64_t cols() const override;
  std::int64_t nnz() const;
  std::string name() const override;  ///< the path
  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override;
  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override;
  std::int64_t best_end(std::int64_t begin, std::int64_t end) const override;  ///< of a block with a checksum
  RowOrder row_order() const override;
  HostVector<std::int64_t> permutation(std::int64_t begin, std::int64_t end) const override;

  /// From now on values are not checked: for a caller that replaces them, or that was told to take them as they are.
  /// Pointers, columns and permutation are checked as before.
  void leave_values_unchecked();

  bool plain_binsparse() const;         ///< written by another program: no tables, no checksums, in its only order
  std::string how() const;              ///< how the file was made; empty for a plain Binsparse file, as the next two
  std::string source() const;           ///< name of the source it was written from
  std::string source_checksum() const;  ///< may be empty
  bool wants_local_sort() const;        ///< made with sort_local
  bool allows_nonfinite() const;        ///< NaN and infinity among the values are accepted
  /// Names the content, for caches: a hash over sizes, permutation and block checksums. Of a plain Binsparse
  /// file, which has none, over sizes and row pointers only.
  std::uint64_t fingerprint() const;
  const std::vector<StoredPartition>& partitions() const;  ///< as stored, by method, then ascending parts

  /// Reads and checks everything: structure, tables, permutation, every block checksum, every row.
  /// Throws Error(input) naming the first thing that is wrong (dataset and row range).
  void verify(const Progress& progress = {}) const;

 private:
  struct Impl;
  explicit ShardFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardmat
