#include "tools/bench/cublas.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "kernels/base/error.h"
#include "kernels/base/late_library.h"

namespace shardmat::tools::cublas {
namespace {

LateLibrary library() {
  static const std::string file = fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR);
  return {"cuBLAS", file.c_str(), SHARDMAT_CUBLAS_DIR, fmt::format("{}.{}", CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR),
          fmt::format("the libraries of CUDA {}", CUDART_VERSION / 1000)};
}

}  // namespace

Functions::Functions() {
  const LateLibrary cublas = library();
  void* const loaded = load(cublas);
  find(loaded, cublas, "cublasCreate_v2", create);
  find(loaded, cublas, "cublasDestroy_v2", destroy);
  find(loaded, cublas, "cublasGetProperty", get_property);
  find(loaded, cublas, "cublasGetStatusString", get_status_string);
  find(loaded, cublas, "cublasSetMathMode", set_math_mode);
  find(loaded, cublas, "cublasSetStream_v2", set_stream);
  find(loaded, cublas, "cublasSetWorkspace_v2", set_workspace);
  find(loaded, cublas, "cublasGemmEx", gemm_ex);
  find(loaded, cublas, "cublasDdot_v2", ddot);
  find(loaded, cublas, "cublasDaxpy_v2", daxpy);
  find(loaded, cublas, "cublasDscal_v2", dscal);
  find(loaded, cublas, "cublasDcopy_v2", dcopy);
  find(loaded, cublas, "cublasDdgmm", ddgmm);
  find(loaded, cublas, "cublasDgemmBatched", dgemm_batched);
  find(loaded, cublas, "cublasSgemmBatched", sgemm_batched);
  find(loaded, cublas, "cublasDgemmStridedBatched", dgemm_strided_batched);
  find(loaded, cublas, "cublasSgemmStridedBatched", sgemm_strided_batched);
}

const Functions& functions() {
  static const Functions loaded;
  return loaded;
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const bool lacking =
      status == CUBLAS_STATUS_ALLOC_FAILED || status == CUBLAS_STATUS_ARCH_MISMATCH || status == CUBLAS_STATUS_NOT_SUPPORTED;
  throw Error(lacking ? ErrorKind::resources : ErrorKind::internal,
              fmt::format("cuBLAS: {} in {}", functions().get_status_string(status), call));
}

std::string version() {
  int part[3] = {};
  constexpr libraryPropertyType kParts[3] = {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL};
  for (int i = 0; i < 3; ++i) check(functions().get_property(kParts[i], &part[i]), "cublasGetProperty");
  return fmt::format("cuBLAS {}.{}.{}", part[0], part[1], part[2]);
}

}  // namespace shardmat::tools::cublas
