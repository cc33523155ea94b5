// A handle of cuBLAS with its errors as ours.
#pragma once

#include <cublas_v2.h>
#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "kernels/base/error.h"

namespace shardmat::tools::cublas {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;  ///< what the library advises on its largest devices

inline void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const bool lacking =
      status == CUBLAS_STATUS_ALLOC_FAILED || status == CUBLAS_STATUS_ARCH_MISMATCH || status == CUBLAS_STATUS_NOT_SUPPORTED;
  throw Error(lacking ? ErrorKind::resources : ErrorKind::internal,
              fmt::format("cuBLAS: {} in {}", cublasGetStatusString(status), call));
}

struct Library {
  Library() { check(cublasCreate(&handle), "cublasCreate"); }
  ~Library() { cublasDestroy(handle); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  cublasHandle_t handle = nullptr;
};

inline std::string version() {
  int part[3] = {};
  constexpr libraryPropertyType kParts[3] = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
  for (int i = 0; i < 3; ++i) check(cublasGetProperty(kParts[i], &part[i]), "cublasGetProperty");
  return fmt::format("cuBLAS {}.{}.{}", part[0], part[1], part[2]);
}

}  // namespace shardmat::tools::cublas
