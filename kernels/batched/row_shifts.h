// Where in the stacked X the matrix of each row begins: computed on the device from where the matrices begin.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/batched/device_batch.h"

namespace shardmat::batched {

class RowShifts {
 public:
  /// Appends to the descriptor what fill() needs; the list itself lies behind it. Returns the bytes of both.
  std::size_t reserve(std::vector<std::int32_t>& descriptor, const BatchOffsets& at);
  /// In stream order; `work` is the plan's memory.
  void fill(void* work, Stream& stream) const;
  const std::int32_t* of(void* work) const { return static_cast<const std::int32_t*>(work) + shifts_; }

 private:
  std::size_t first_row_ = 0, first_col_ = 0, shifts_ = 0;  ///< entries from the beginning of the work memory
  std::int32_t count_ = 0, rows_ = 0;
};

}  // namespace shardmat::batched
