// A copy of rows on a GPU that a conversion made, kept for what reads the same rows next: uploads take longer than most of
// what is done with rows there.
//
// Threads: each thread has its own.
#pragma once

#include <memory>

#include "kernels/matrix/csr.h"

namespace shardmat {

struct CsrStorage;

/// While it lives, the copy of all of `rows` that ConversionInput::csr() makes on a GPU stays until forget(). One inside
/// another hides it.
class KeptUpload {
 public:
  /// REQUIRES: the rows neither change nor go while this lives.
  explicit KeptUpload(const CsrView& rows);
  ~KeptUpload();
  KeptUpload(const KeptUpload&) = delete;
  KeptUpload& operator=(const KeptUpload&) = delete;

  /// The copy of these rows; null: there is none.
  static std::shared_ptr<const CsrStorage> find(const CsrView& rows);
  /// The same if it has the values of the rows in f64 or f32, none of them rounded.
  static std::shared_ptr<const CsrStorage> find_exact(const CsrView& rows);
  /// Nothing if nobody keeps these rows.
  static void keep(const CsrView& rows, const std::shared_ptr<const CsrStorage>& copy);
  /// Lets go of what is kept.
  static void forget();

 private:
  bool is_of(const CsrView& rows) const;

  const std::int64_t* row_ptr_;
  std::int64_t rows_, nnz_;
  std::shared_ptr<const CsrStorage> copy_;
  KeptUpload* outer_;
};

}  // namespace shardmat
