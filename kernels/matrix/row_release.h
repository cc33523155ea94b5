// Gives the memory of rows back to the system while they are converted to a format, so that a matrix and its stored format
// are never in memory together.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/matrix/csr.h"

namespace shardmat {

/// Permission to release the columns and values of one matrix. Who sets CsrView::release knows that nobody reads the matrix
/// after its next conversion. Memory is given back in blocks of 2 MiB, the size of a huge page: a block is released when
/// its last nonzero is. Threads may call release() and the observers at the same time.
class RowRelease {
 public:
  /// REQUIRES: columns and values lie in private anonymous memory, such as a Buffer of the host, which outlives this object.
  explicit RowRelease(const CsrView& matrix);

  /// The nonzeros first … last - 1 of `rows` were read for the last time; after this call they may read as zeros. `rows` is
  /// the matrix of the constructor. REQUIRES: no nonzero is released twice.
  void release(const CsrView& rows, std::int64_t first, std::int64_t last);

  /// True once release() was called for any nonzero. The matrix must not be read again.
  bool began() const { return began_.load(std::memory_order_relaxed); }
  /// Bytes that were given back.
  std::int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  /// One array, and how many of its bytes in each block are still to be read.
  class Array {
   public:
    Array(const void* begin, std::size_t bytes);
    /// Returns the bytes that were given back.
    std::int64_t release(const void* from, std::size_t bytes);

   private:
    std::uintptr_t begin_, end_;
    std::unique_ptr<std::atomic<std::size_t>[]> left_;
  };

  Array columns_, values_;
  std::atomic<bool> began_ = false;
  std::atomic<std::int64_t> bytes_ = 0;
};

}  // namespace shardmat
