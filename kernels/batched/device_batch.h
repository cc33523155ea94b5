// A batch in the memory of the device that multiplies it. Kernels read its arrays in place, whether they are a copy made
// here or tensors of a framework. Only the offsets of the matrices are known on the host, too: plans spread the work by
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/batched/batch.h"

namespace shardmat {

/// Where the rows, columns and entries of each matrix begin: count() + 1 ascending offsets each, from 0.
struct BatchOffsets {
  std::vector<std::int32_t> first_row{0}, first_col{0}, first_entry{0};
  std::int32_t most_rows = 0, most_cols = 0, most_entries = 0;  ///< of one matrix

  /// 2^31 less a margin, because kernels step beyond the end.
  static constexpr std::int64_t most = 0x7fffffff - 4096;

  BatchOffsets() = default;
  /// The arguments may begin at any number. Throws Error(input) for offsets that decrease, naming the matrix; Error(usage)
  /// for different lengths; Error(resources) if the batch has more rows, columns or nonzeros than `most` and must be cut.
  BatchOffsets(std::span<const std::int64_t> rows, std::span<const std::int64_t> cols,
               std::span<const std::int64_t> entries);

  std::int64_t count() const { return std::ssize(first_row) - 1; }
  std::int64_t rows() const { return first_row.back(); }  ///< of all matrices together
  std::int64_t cols() const { return first_col.back(); }
  std::int64_t nnz() const { return first_entry.back(); }
};

/// Rounds up to the alignment of arrays in a block of memory.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

enum class BatchFormat { csr, coo };
std::string_view name(BatchFormat format);

/// A batch whose arrays lie in memory of `device`. Owns nothing.
struct DeviceBatch {
  Device device;
  BatchFormat format = BatchFormat::csr;
  ValueType type = ValueType::f32;
  BatchOffsets at;
  const std::int32_t* row_ptr = nullptr;  ///< csr: at.rows() + 1 offsets, from 0, continued from matrix to matrix
  const std::int32_t* row_idx = nullptr;  ///< coo: at.nnz() rows within the matrix, in any order
  const std::int32_t* col_idx = nullptr;  ///< at.nnz() columns within the matrix
  const void* values = nullptr;           ///< at.nnz() entries of `type`

  /// Bytes of the arrays.
  std::int64_t bytes() const;
  /// The least number of bytes that a product with `columns` columns moves: the arrays, X and Y, once each.
  std::int64_t compulsory_bytes(std::int64_t columns) const;
};

/// A batch that owns its arrays.
struct StoredBatch : DeviceBatch {
  Buffer memory;
};

/// Bytes of such a block for a batch in CSR.
std::size_t csr_block_bytes(std::int64_t rows, std::int64_t nnz, ValueType type);

/// The layout of a batch in one block of memory, which one copy brings to a device. The batch it was made from must stay
/// valid.
class PackedBatch {
 public:
  /// Throws as BatchOffsets(), and Error(input) for a value that would become infinite in f16 or bf16. REQUIRES: a validated
  /// batch.
  PackedBatch(const BatchView& batch, ValueType type);
  PackedBatch(const CooBatchView& batch, ValueType type);

  std::size_t bytes() const { return bytes_; }
  /// Writes the block, with all threads.
  void write(std::byte* to) const;
  /// The batch once its block lies at `memory` of a device, 256-byte aligned.
  DeviceBatch at(Device device, const void* memory) const;

 private:
  void lay_out();

  DeviceBatch shape_;                      ///< without arrays
  std::span<const std::int64_t> row_ptr_;  ///< csr
  std::span<const std::int32_t> row_idx_;  ///< coo
  std::span<const std::int32_t> col_idx_;
  std::span<const double> values_;
  std::size_t columns_ = 0, values_place_ = 0, bytes_ = 0;  ///< row pointers or rows come first
};

/// Copies the batch to the stream's device by one copy. Throws Error(resources) before allocating if it does not fit, and as
/// BatchOffsets(). REQUIRES: a validated batch.
std::shared_ptr<StoredBatch> upload(const BatchView& batch, ValueType type, Stream& stream);
std::shared_ptr<StoredBatch> upload(const CooBatchView& batch, ValueType type, Stream& stream);

}  // namespace shardmat
