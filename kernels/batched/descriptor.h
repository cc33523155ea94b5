// A descriptor tells a kernel where matrices, or groups of matrices, begin. It is sent to the device, which computes from it
// for each row where the row's matrix begins in the stacked X.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/batched/device_batch.h"

namespace shardmat::batched {

/// True if `words` words fit into the arguments of a kernel, besides its other arguments.
constexpr std::size_t kWordsOfLaunch = 960;
constexpr bool travels_with_launch(std::size_t words) { return words <= kWordsOfLaunch; }

/// A list with one entry for each row, after the descriptor in a plan's work memory. Positions count 4-byte words from the
/// start of the work memory.
struct RowShifts {
  std::size_t first_row = 0, first_col = 0;  ///< positions of the first rows and first columns in the descriptor
  std::size_t shifts = 0;                    ///< position of the list
  std::int32_t count = 0, rows = 0;          ///< numbers of matrices and rows; 0 rows: no list

  /// Appends the offsets from which the list is computed to the descriptor.
  RowShifts(std::vector<std::int32_t>& descriptor, const BatchOffsets& at);
  RowShifts() = default;
  /// Bytes of descriptor and list.
  std::size_t bytes() const { return (shifts + static_cast<std::size_t>(rows)) * sizeof(std::int32_t); }
  const std::int32_t* of(const void* work) const { return static_cast<const std::int32_t*>(work) + shifts; }
};

}  // namespace shardmat::batched

namespace shardmat::cuda {

#ifdef SHARDMAT_HAVE_CUDA
/// Copies the descriptor to `work` and fills the list, in stream order. A short descriptor travels in the arguments of a
/// kernel. A longer one is copied to `staging` first, which must stay valid until the stream has passed this call.
void place_descriptor(const std::vector<std::int32_t>& descriptor, const batched::RowShifts& shifts, void* work,
                      void* staging, Stream& stream);
#else
inline void place_descriptor(const std::vector<std::int32_t>&, const batched::RowShifts&, void*, void*, Stream&) {}
#endif

}  // namespace shardmat::cuda
