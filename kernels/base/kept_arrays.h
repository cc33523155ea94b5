// Memory of large host arrays that is used again.
//
// Threads: any.
#pragma once

namespace shardmat {

/// While one lives, large arrays (HostVector) that are freed are kept for the next ones: for work that makes many arrays, of
/// which the system would clear every page. With those in use they are never more bytes than were in use at once.
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
