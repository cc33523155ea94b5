// What a plan tells its kernel, on its way to the device: where matrices or groups of them begin, and from that, computed
// there, where in the stacked X the matrix of each row begins.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/batched/device_batch.h"

namespace shardmat::batched {

/// True if so many words fit beside the other arguments of a kernel.
constexpr std::size_t kWordsOfLaunch = 960;
constexpr bool travels_with_launch(std::size_t words) { return words <= kWordsOfLaunch; }

/// A list with an entry a row, behind the descriptor in a plan's work memory; all places count 4-byte words from its
/// beginning.
struct RowShifts {
  std::size_t first_row = 0, first_col = 0;  ///< in the descriptor: where the rows and columns of each matrix begin
  std::size_t shifts = 0;
  std::int32_t count = 0, rows = 0;  ///< matrices; 0 rows: there is no such list

  /// Appends to the descriptor what the list is computed from.
  RowShifts(std::vector<std::int32_t>& descriptor, const BatchOffsets& at);
  RowShifts() = default;
  /// Of descriptor and list.
  std::size_t bytes() const { return (shifts + static_cast<std::size_t>(rows)) * sizeof(std::int32_t); }
  const std::int32_t* of(const void* work) const { return static_cast<const std::int32_t*>(work) + shifts; }
};

}  // namespace shardmat::batched

namespace shardmat::cuda {

#ifdef SHARDMAT_HAVE_CUDA
/// Puts the descriptor into `work` and fills the list, in stream order. A short descriptor travels with the launch of a
/// kernel; a longer one is copied to `staging` first, which must stay until the stream has passed.
void place_descriptor(const std::vector<std::int32_t>& descriptor, const batched::RowShifts& shifts, void* work,
                      void* staging, Stream& stream);
#else
inline void place_descriptor(const std::vector<std::int32_t>&, const batched::RowShifts&, void*, void*, Stream&) {}
#endif

}  // namespace shardmat::cuda
