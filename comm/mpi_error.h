// The texts of MPI's errors, and the check of calls that concern this process alone.
#pragma once

#include <fmt/format.h>
#include <mpi.h>

#include <string>

#include "kernels/base/error.h"

namespace shardmat {

inline std::string mpi_text(int mpi_error) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  return MPI_Error_string(mpi_error, text, &length) == MPI_SUCCESS ? std::string(text)
                                                                   : fmt::format("MPI error {}", mpi_error);
}

/// Throws Error(internal) unless a call that needs no other rank succeeded.
inline void check_local(int mpi_error, const char* what) {
  if (mpi_error != MPI_SUCCESS) throw Error(ErrorKind::internal, fmt::format("{} failed: {}", what, mpi_text(mpi_error)));
}

}  // namespace shardmat
