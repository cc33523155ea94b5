// Copies of rows on a GPU that conversions made, kept for what reads the same rows next: uploads take longer than most of
// what is done with rows there.
//
// Threads: each thread has its own.
#pragma once

#include <memory>
#include <vector>

#include "kernels/matrix/csr.h"

namespace shardmat {

struct CsrStorage;

/// While one lives, the first copy of all rows that ConversionInput::csr() makes of a matrix on a GPU stays, at the latest
/// until forget() or the end of the outermost one.
class KeptUploads {
 public:
  KeptUploads();
  ~KeptUploads();
  KeptUploads(const KeptUploads&) = delete;
  KeptUploads& operator=(const KeptUploads&) = delete;

  /// The copy of these rows, with the values that they had then; null: there is none.
  static std::shared_ptr<const CsrStorage> find(const CsrView& rows);
  static void keep(const CsrView& rows, const std::shared_ptr<const CsrStorage>& copy);
  static void forget(const CsrView& rows);
};

}  // namespace shardmat
