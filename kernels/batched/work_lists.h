// The lists that tell a kernel for batches who does what, and how they come to the device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/device.h"
#include "kernels/batched/descriptor.h"

namespace shardmat {

class WorkLists {
 public:
  /// Device memory for them.
  std::size_t work_bytes() const { return std::max(descriptor_bytes(), shifts_.bytes()); }
  /// Of these, what is copied from the host: the batch's descriptor.
  std::size_t descriptor_bytes() const { return descriptor_.size() * sizeof(std::int32_t); }
  /// Bytes of host memory on its way: none where the descriptor travels with a launch.
  std::size_t staging_bytes() const { return batched::travels_with_launch(descriptor_.size()) ? 0 : descriptor_bytes(); }
  /// Fills work_bytes() bytes of the device, 256-byte aligned, in stream order; they must stay as long as the plan runs.
  /// `staging` takes staging_bytes() and must stay until the stream has passed this; if it is page-locked, nothing waits.
  void place(void* work, void* staging, Stream& stream);
  /// The same with memory of its own. Throws Error(resources) if there is none.
  void place(Stream& stream);

 protected:
  ~WorkLists() = default;
  /// Throws Error(internal) if the lists are not in place.
  void require_placed() const;
  void* work() const { return work_; }
  std::vector<std::int32_t> descriptor_;  ///< lies at the beginning of the work memory
  batched::RowShifts shifts_;             ///< lies behind it, if there is such a list

 private:
  void* work_ = nullptr;
  bool placed_ = false;
  Buffer own_;
};

}  // namespace shardmat
