// Vectors in original order, wherever they come from, and the way between that order and a rank's own entries.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "comm/communicator.h"
#include "kernels/base/device.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/types.h"

namespace shardmat {

/// A vector whose entries can be asked for by original index: a file, all ones, zeros, or random; or a matrix with that many
/// rows and a few columns, asked for by rows.
class VectorSource {
 public:
  virtual ~VectorSource() = default;
  virtual std::string name() const = 0;
  virtual std::int64_t columns() const { return 1; }
  /// Rows [begin, end), row by row.
  virtual HostVector<double> read(std::int64_t begin, std::int64_t end) const = 0;
};

/// `text` is "ones", "zeros", "random" (uniform in [-1, 1), a function of seed and index alone) or a file. `what` ("x") is
/// the dataset's name in HDF5 and names the vector in messages. Throws Error(input) if a file has not exactly `size`
/// rows and `columns` columns.
std::unique_ptr<VectorSource> open_vector(const std::string& text, const std::string& what, std::int64_t size,
                                          std::uint64_t seed, std::int64_t columns = 1);

/// The rows with the given original indices, in their order. Reads a file in slices of bounded memory.
HostVector<double> collect(const VectorSource& source, std::span<const std::int64_t> indices);

/// Converts to `type` and copies to the stream's device; returns when the copy is done.
void to_device(void* device_memory, std::span<const double> values, ValueType type, Stream& stream);
/// The opposite: `count` values of `type` as f64.
HostVector<double> to_host(const void* device_memory, std::int64_t count, ValueType type, Stream& stream);

/// Writes a distributed vector to `path` in original order; rank r's values[i] is entry indices[i], or the `columns` values
/// from i·columns on are row indices[i] of a matrix. Rank 0 writes; memory is bounded by a window of the vector, but a
/// matrix in .mtx, which wants columns one after another, is held whole. Collective; nothing is left behind on an error.
void write_vector(const std::string& path, const std::string& dataset, std::int64_t size, ValueType type,
                  std::span<const std::int64_t> indices, std::span<const double> values, Communicator& communicator,
                  std::int64_t columns = 1);

}  // namespace shardmat
