// One chunk of a batch on its way through a device: read, packed in the device's layout, copied, multiplied, copied back.
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "kernels/base/device.h"
#include "kernels/batched/batched_spmm.h"
#include "partition/batched/batch_source.h"
#include "runtime/matrix/vectors.h"

namespace shardmat {

/// Consecutive matrices of a batch, and the position of their rows in the stacked X and Y of the whole batch.
struct BatchRange {
  std::int64_t begin = 0, end = 0;            ///< matrices [begin, end)
  std::int64_t first_row = 0, first_col = 0;  ///< first rows in the stacked Y and X
  std::int64_t rows = 0, cols = 0, nnz = 0;
  std::int64_t bytes = 0;  ///< the least that a product moves

  bool empty() const { return begin == end; }
};

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
  /// With page-locked host memory, copies run concurrently with other work. Allocating it takes long: reuse a few objects
  /// for all chunks.
  BatchedChunk(Device device, bool page_locked) : device_(device), page_locked_(page_locked) {}

  /// Reads the matrices (or their transposes) and their rows of X; locks `files` meanwhile. Does not use the device.
  void read(const BatchRange& range, const ChunkOptions& options, std::mutex& files);
  /// Allocates device memory and copies batch and X to it, in stream order.
  void upload(Stream& stream);
  /// Copies the work lists of a plan to this chunk's device memory, in stream order.
  void place(BatchedPlan& plan, Stream& stream);
  /// Copies Y to the host, in stream order.
  void download(Stream& stream);

  const BatchRange& range() const { return range_; }
  /// The batch as it is multiplied.
  const HostBatch& on_host() const { return host_; }
  std::span<const double> x_on_host() const { return x_values_; }
  /// The batch on the device. REQUIRES: upload().
  const std::shared_ptr<const DeviceBatch>& batch() const { return batch_; }
  const void* x() const { return memory_.as<std::byte>() + x_place_; }
  void* y() const { return memory_.as<std::byte>() + y_place_; }
  /// Y on the host, row by row, of sum_type(). Valid when download() is complete.
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
  Buffer memory_, work_;  ///< memory_: batch, X and Y; work_: work lists of a plan
  std::size_t outgoing_bytes_ = 0, x_place_ = 0, y_place_ = 0, result_bytes_ = 0;
};

}  // namespace shardmat
