// Vectors in original order: reading them from files or generators, and writing distributed vectors.
//
// Threads: one thread at a time uses a source.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "comm/communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/types.h"

namespace shardmat {

/// A vector that can be read by original index: a file, ones, zeros or random numbers. With several columns: a dense matrix,
/// read by rows.
class VectorSource {
 public:
  virtual ~VectorSource() = default;
  virtual std::string name() const = 0;
  virtual std::int64_t columns() const { return 1; }
  /// The value of all entries, if they are alike.
  virtual std::optional<double> constant() const { return std::nullopt; }
  /// Rows [begin, end), row by row.
  virtual HostVector<double> read(std::int64_t begin, std::int64_t end) const = 0;
};

/// `text` is "ones", "zeros", "random" (uniform in [-1, 1), a function of seed and index alone) or a file. `what` (e.g. "x")
/// is the dataset's name in HDF5 and names the vector in messages. Throws Error(input) if a file does not have exactly
/// `size` rows and `columns` columns.
std::unique_ptr<VectorSource> open_vector(const std::string& text, const std::string& what, std::int64_t size,
                                          std::uint64_t seed, std::int64_t columns = 1);

/// The rows with the given original indices, in the order of `indices`. Reads a file in slices of bounded memory.
HostVector<double> collect(const VectorSource& source, std::span<const std::int64_t> indices);

/// Converts to `type` and copies to the stream's device; returns when the copy is done.
void to_device(void* device_memory, std::span<const double> values, ValueType type, Stream& stream);
/// Copies `count` values of `type` from the device and converts them to f64.
HostVector<double> to_host(const void* device_memory, std::int64_t count, ValueType type, Stream& stream);

/// Writes a distributed vector to `path` in original order. On each rank, row i of `values` (`columns` values from
/// i·columns on) is row indices[i] of the whole vector. Rank 0 writes, and holds one window of the vector in memory; for
/// .mtx with several columns it holds the whole vector, because that format stores columns one after another. `files`: how
/// many files of hypre it becomes (partition/files/atomic_files.h). Collective; leaves no partial file on an error.
void write_vector(const std::string& path, const std::string& dataset, std::int64_t size, ValueType type,
                  std::span<const std::int64_t> indices, std::span<const double> values, Communicator& communicator,
                  std::int64_t columns = 1, std::int64_t files = 1);

}  // namespace shardmat
