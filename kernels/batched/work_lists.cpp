#include "kernels/batched/work_lists.h"

#include "kernels/base/error.h"

namespace shardmat {

void WorkLists::place(void* work, void* staging, Stream& stream) {
  work_ = work;
  placed_ = true;
  if (list_bytes() > 0) cuda::place_descriptor(descriptor_, shifts_, work, staging, stream);
  if (scratch_bytes_ > 0) fill_bytes(scratch(), 0, scratch_bytes_, stream);
}

void WorkLists::place(Stream& stream) {
  require_memory(stream.device(), static_cast<std::int64_t>(work_bytes()), "the lists of a batched product");
  own_ = Buffer(stream.device(), work_bytes());
  std::vector<std::byte> staging(staging_bytes());
  place(own_.data(), staging.data(), stream);
  stream.synchronize();
}

void WorkLists::require_placed() const {
  if (placed_) return;
  throw Error(ErrorKind::usage,
              "the plan has no memory yet: call shardmat_batched_plan_place() (in C++: place()) once, before the first "
              "product");
}

}  // namespace shardmat
