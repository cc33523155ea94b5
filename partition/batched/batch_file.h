// The batch file: a batch of small sparse matrices in HDF5. Any range of matrices can be read without the rest. The datasets
// are the arrays of HostBatch; all are contiguous, so that h5py and other programs can read them.
//
//   attribute shardmat_batch   of the root: JSON object with the integers version (1), number_of_matrices, number_of_rows,
//                              number_of_columns (of all matrices together) and number_of_stored_values, and the strings
//                              source (what the batch was read from) and how (how the file was made)
//   /first_row      int64 [number_of_matrices + 1]  matrix i has the stacked rows first_row[i] … first_row[i + 1] - 1
//   /first_column   int64 [number_of_matrices + 1]  the same for columns; may be missing if all matrices are square
//   /pointers_to_1  int64 [number_of_rows + 1]      where the entries of each stacked row begin
//   /indices_1      int32 [number_of_stored_values] columns, counted within the matrix
//   /values         float64 or float32 [number_of_stored_values]
//
// All offsets begin with 0. Other datasets may stand beside them, such as dense operands /x [number_of_columns, k]; they are
// not read here.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/progress.h"
#include "partition/batched/batch_source.h"

namespace shardmat {

struct BatchWriteOptions {
  std::string how;    ///< how the batch was made, e.g. the command line; stored for people
  bool f32 = false;   ///< store 4-byte values
  Progress progress;  ///< nonzeros written
};

/// Writes `source` to `path` in chunks of kSliceEntries (to a temporary file that is flushed to disk and renamed). Throws
/// Error(resources) if the disk is full or not writable, Error(input) for a value that is not finite in f32; then no file is
/// left behind.
void write_batch_file(const std::filesystem::path& path, const BatchSource& source, const BatchWriteOptions& options = {});

/// A batch file opened for reading. sizes() reads the pointers of the range, but no entries. Everything that is read is
/// checked, so that a damaged file cannot crash the program.
class BatchFile : public BatchSource {
 public:
  /// Throws Error(input) with file, dataset and remedy if the file is no batch file, is truncated, has a newer version, or
  /// has contradictory contents.
  static std::unique_ptr<BatchFile> open(const std::filesystem::path& path);
  /// The HDF5 objects that are read, for describing the file (hdf5/describe.h).
  static std::vector<std::string> objects();
  ~BatchFile() override;

  const std::string& source() const;  ///< name of the source it was written from; may be empty
  const std::string& how() const;     ///< how the file was made; may be empty
  bool f32() const;                   ///< true if the values are stored in 4 bytes

 private:
  struct Impl;
  explicit BatchFile(std::unique_ptr<Impl> impl);
  BatchSizes sizes_of(std::int64_t begin, std::int64_t end) const override;
  HostBatch read_range(std::int64_t begin, std::int64_t end) const override;

  std::unique_ptr<Impl> impl_;
};

}  // namespace shardmat
