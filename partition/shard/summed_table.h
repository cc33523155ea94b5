// A table of a shard file beside the matrix: rows of a few numbers, with a checksum for each kRows of them. A reader
// compares those of the rows that it wants, so that a rank reads no more than its share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/host_vector.h"
#include "partition/hdf5/file.h"
#include "partition/hdf5/writer.h"

namespace shardmat {

/// T is double or std::int64_t. Used by one thread at a time.
template <class T>
class SummedTable {
 public:
  static constexpr std::int64_t kRows = std::int64_t{1} << 16;

  SummedTable() = default;  ///< none: has no rows
  /// That of the file, or none. Throws Error(input) for other shapes and types.
  SummedTable(const Hdf5File& file, const std::string& name);

  std::int64_t rows() const { return rows_; }
  int columns() const { return columns_; }
  const Hdf5Dataset& dataset() const { return data_; }

  /// Rows [begin, end), row by row. Throws Error(input), for damaged ones through reject(), which does not return.
  HostVector<T> read(std::int64_t begin, std::int64_t end, const std::function<void(const std::string& why)>& reject);
  /// Checks all rows, also those that were checked before.
  void verify(const std::function<void(const std::string& why)>& reject);

 private:
  Hdf5Dataset data_;
  std::int64_t rows_ = 0;
  int columns_ = 0;
  std::vector<std::uint64_t> checksums_;
  std::vector<bool> checked_;
};

/// Writes a table of rows × columns, if it has rows. `rows_between` gives the rows [begin, end), row by row.
template <class T>
void write_summed_table(Hdf5Writer& file, const std::string& name, std::int64_t rows, int columns,
                        const std::function<HostVector<T>(std::int64_t begin, std::int64_t end)>& rows_between);

}  // namespace shardmat
