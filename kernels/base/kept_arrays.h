// Memory that is used again: of large host arrays, and of buffers on GPUs.
//
// Threads: any.
#pragma once

namespace shardmat {

/// While one lives, memory that is freed is kept for the next allocation: large host arrays (HostVector, Buffer), of which
/// the system would clear every page, and buffers on GPUs and of page-locked memory, for which the driver would wait and map
/// pages. For work that makes many arrays. Of each kind, what is kept and in use is never more than was in use at once.
class KeptArrays {
 public:
  KeptArrays();
  ~KeptArrays();
  KeptArrays(const KeptArrays&) = delete;
  KeptArrays& operator=(const KeptArrays&) = delete;
};

/// Returns their memory to the system now; those that are freed later are kept again.
void free_kept_arrays();

}  // namespace shardmat
