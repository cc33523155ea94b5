// A batch where it is multiplied. Kernels read its arrays in place, whoever owns them: a copy made here, or the tensors of a
// framework. Only where the matrices begin is known on the host, too: plans decide by that how the work is spread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/batched/batch.h"

namespace shardmat {

/// Where the matrices of a batch begin, counted from 0; each count() + 1 entries, ascending.
struct BatchOffsets {
  std::vector<std::int32_t> first_row{0}, first_col{0}, first_entry{0};
  std::int32_t most_rows = 0, most_cols = 0, most_entries = 0;  ///< of one matrix

  /// 2^31 but for what kernels step beyond the end.
  static constexpr std::int64_t most = 0x7fffffff - 4096;

  BatchOffsets() = default;
  /// Any of them may begin at another number than 0. Throws Error(input) naming the matrix where one falls, Error(usage) for
  /// lengths that differ, Error(resources) if the batch has more rows, columns or nonzeros than `most`: it is to be cut
  /// then.
  BatchOffsets(std::span<const std::int64_t> rows, std::span<const std::int64_t> cols,
               std::span<const std::int64_t> entries);

  std::int64_t count() const { return std::ssize(first_row) - 1; }
  std::int64_t rows() const { return first_row.back(); }  ///< of all matrices together
  std::int64_t cols() const { return first_col.back(); }
  std::int64_t nnz() const { return first_entry.back(); }
};

/// Up to where the next array in a block of memory begins.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

enum class BatchFormat { csr, coo };
std::string_view name(BatchFormat format);

/// Arrays in memory of `device`. Nothing is owned.
struct DeviceBatch {
  Device device;
  BatchFormat format = BatchFormat::csr;
  ValueType type = ValueType::f32;
  BatchOffsets at;
  const std::int32_t* row_ptr = nullptr;  ///< csr: at.rows() + 1 entries, from 0, running on from matrix to matrix
  const std::int32_t* row_idx = nullptr;  ///< coo: at.nnz() entries, counted within the matrix, in any order
  const std::int32_t* col_idx = nullptr;  ///< at.nnz() entries, counted within the matrix
  const void* values = nullptr;           ///< at.nnz() entries of `type`

  /// Of the arrays.
  std::int64_t bytes() const;
  /// That a product with so many columns has to move at least: the arrays, X and Y, once each.
  std::int64_t compulsory_bytes(std::int64_t columns) const;
};

/// A batch with a copy of its own of the arrays.
struct StoredBatch : DeviceBatch {
  Buffer memory;
};

/// How a batch lies in one block of memory, so that it goes to a device by one copy. What it was made from must stay.
class PackedBatch {
 public:
  /// Throws as BatchOffsets does, and Error(input) for a value that would become infinite in f16 or bf16. REQUIRES: a
  /// validated batch.
  PackedBatch(const BatchView& batch, ValueType type);
  PackedBatch(const CooBatchView& batch, ValueType type);

  std::size_t bytes() const { return bytes_; }
  /// Writes the block, on all threads.
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

/// The batch on the stream's device, put there by one copy. Throws Error(resources) before allocating if it does not fit,
/// and as BatchOffsets does. REQUIRES: a validated batch.
std::shared_ptr<StoredBatch> upload(const BatchView& batch, ValueType type, Stream& stream);
std::shared_ptr<StoredBatch> upload(const CooBatchView& batch, ValueType type, Stream& stream);

}  // namespace shardmat
