// Memory that is used again: of large host arrays, and of buffers on GPUs.
//
// Threads: any.
#pragma once

namespace shardmat {

/// While one lives, memory that is freed is kept for the next allocation: large host arrays (HostVector, Buffer), of which
/// the system would clear every page, and buffers on GPUs and of page-locked memory, for which the driver would wait and map
/// pages. A buffer of a GPU that a borrowed stream works on must not be freed before that work is done. For work that makes
/// many arrays. Of each kind, what is kept and in use is never more than was in use at once, on a GPU than 1.5 times that.
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
