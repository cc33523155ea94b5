// One chunk of a batch on its way through a device: read and packed as it will lie there, copied, multiplied, copied back.
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "kernels/base/device.h"
#include "kernels/batched/batched_spmm.h"
#include "partition/batched/batch_source.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {

/// Matrices of a batch, and where their parts of the stacked X and Y lie in those of the whole batch.
struct BatchRange {
  std::int64_t begin = 0, end = 0;  ///< matrices
  std::int64_t first_row = 0, first_col = 0;
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t bytes = 0;  ///< that a product moves at least

  bool empty() const { return begin == end; }
};

/// What is the same for all chunks.
struct ChunkOptions {
  const BatchSource* source = nullptr;
  const VectorSource* x = nullptr;
  bool transpose = false;
  std::int64_t columns = 1;
  ValueType type = ValueType::f32;
  BatchFormat format = BatchFormat::csr;
};

class BatchedChunk {
 public:
  /// Page-locked memory on the way lets copies run beside other work; it takes long to allocate, so chunks that are many go
  /// through the same few of these.
  BatchedChunk(Device device, bool page_locked) : device_(device), page_locked_(page_locked) {}

  /// Reads the matrices (their transposes, if asked for) and their rows of X, holding `files` while it does. Does nothing on
  /// the device.
  void read(const BatchRange& range, const ChunkOptions& options, std::mutex& files);
  /// Makes room on the device and puts batch and X there, in stream order.
  void upload(Stream& stream);
  /// Puts a plan's lists into memory of this chunk, in stream order.
  void place(BatchedPlan& plan, Stream& stream);
  /// Y to the host, in stream order.
  void download(Stream& stream);

  const BatchRange& range() const { return range_; }
  /// The batch as it is multiplied.
  const HostBatch& on_host() const { return host_; }
  std::span<const double> x_on_host() const { return x_values_; }
  /// After upload().
  const std::shared_ptr<const DeviceBatch>& batch() const { return batch_; }
  const void* x() const { return memory_.as<std::byte>() + x_place_; }
  void* y() const { return memory_.as<std::byte>() + y_place_; }
  /// Row by row, of the type of sums, once download() is done.
  const void* result() const { return returned_.data(); }
  std::size_t result_bytes() const { return result_bytes_; }
  std::int64_t device_bytes() const { return static_cast<std::int64_t>(memory_.bytes() + work_.bytes()); }

 private:
  Device device_;
  bool page_locked_;
  BatchRange range_;
  HostBatch host_;
  HostCooBatch coo_;
  HostVector<double> x_values_;
  std::unique_ptr<PackedBatch> packed_;
  std::shared_ptr<const DeviceBatch> batch_;
  HostBuffer outgoing_, returned_, staging_;
  Buffer memory_, work_;  ///< batch, X and Y; a plan's lists
  std::size_t outgoing_bytes_ = 0, x_place_ = 0, y_place_ = 0, result_bytes_ = 0;
};

}  // namespace shardmat
