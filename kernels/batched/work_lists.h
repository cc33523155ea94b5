// The work lists of a plan: they tell a kernel for batches how the work is spread. Sends them to the device.
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
  /// Device memory for the lists (none if the descriptor travels with each product) and for what a kernel keeps between its
  /// two parts.
  std::size_t work_bytes() const { return scratch_place() + scratch_bytes_; }
  /// What the host sends to the device: the batch's descriptor.
  std::size_t descriptor_bytes() const { return descriptor_.size() * sizeof(std::int32_t); }
  /// Host memory to stage the descriptor: none if it travels in the arguments of a launch.
  std::size_t staging_bytes() const { return batched::travels_with_launch(descriptor_.size()) ? 0 : descriptor_bytes(); }
  /// Writes the lists to `work` in stream order, if there are any: work_bytes() bytes of device memory, 256-byte aligned,
  /// which must stay valid as long as the plan runs. `staging` has staging_bytes() bytes and must stay valid until the
  /// stream has passed this call; if it is page-locked, the call does not wait.
  void place(void* work, void* staging, Stream& stream);
  /// The same, allocating its memory. Throws Error(resources) if there is not enough.
  void place(Stream& stream);

 protected:
  ~WorkLists() = default;
  /// Throws Error(usage) if the lists are not in place.
  void require_placed() const;
  void* work() const { return work_; }
  /// `scratch_bytes_` bytes behind the lists, all zero before the first product; 256-byte aligned.
  void* scratch() const { return static_cast<std::byte*>(work_) + scratch_place(); }
  /// Called by plans whose kernels take descriptors in their arguments, when the descriptor is complete.
  void send_with_product() { with_product_ = batched::travels_with_launch(descriptor_.size()); }
  /// Calls f(batched::Descriptor<…>): for the arguments of a kernel, or in work memory.
  template <class F>
  void with_descriptor(const F& f) const {
    if (!with_product_) f(batched::Descriptor<0>{static_cast<const std::int32_t*>(work_)});
    else if (descriptor_.size() > batched::kFewWordsOfLaunch) f(batched::Descriptor<batched::kWordsOfLaunch>(descriptor_));
    else f(batched::Descriptor<batched::kFewWordsOfLaunch>(descriptor_));
  }
  std::vector<std::int32_t> descriptor_;  ///< at the beginning of the work memory
  batched::RowShifts shifts_;             ///< after the descriptor, if the plan has this list
  std::size_t scratch_bytes_ = 0;         ///< that a kernel writes; set by the constructor

 private:
  std::size_t list_bytes() const { return with_product_ ? 0 : std::max(descriptor_bytes(), shifts_.bytes()); }
  std::size_t scratch_place() const { return scratch_bytes_ == 0 ? list_bytes() : aligned(list_bytes()); }

  void* work_ = nullptr;
  bool placed_ = false, with_product_ = false;
  Buffer own_;
};

}  // namespace shardmat
