// Memory of large host arrays that is used again.
//
// Threads: any.
#pragma once

namespace shardmat {

/// While one lives, large arrays (HostVector) that are freed are kept for the next ones, up to half the bytes in use: for
/// work that makes many arrays. The system would clear every page of them.
class KeptArrays {
 public:
  KeptArrays();
  ~KeptArrays();
  KeptArrays(const KeptArrays&) = delete;
  KeptArrays& operator=(const KeptArrays&) = delete;
};

}  // namespace shardmat
