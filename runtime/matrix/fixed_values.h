// What is said of new values for a matrix that has no room for them.
#pragma once

#include "kernels/base/error.h"
#include "runtime/matrix/matrix_options.h"

namespace shardmat {

/// Throws Error(usage) unless the values may change. Not collective.
inline void require_updatable(Values values) {
  if (values == Values::updatable) return;
  throw Error(ErrorKind::usage,
              "the matrix was made without room for new values; make it anew as an updatable one (Python: updatable=True; "
              "C, Fortran: updatable = 1 in the options; C++: Values::updatable)");
}

}  // namespace shardmat
