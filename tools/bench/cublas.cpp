#include "tools/bench/cublas.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "kernels/base/error.h"

namespace shardmat::tools::cublas {
namespace {

/// The library of the version that the program was built with: where the loader looks, else where the build found it.
void* load() {
  const std::string file = fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR);
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen(fmt::format("{}/{}", SHARDMAT_CUBLAS_DIR, file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    throw Error(ErrorKind::resources, fmt::format("cuBLAS cannot be loaded: {}; install it, or put its folder into "
                                                  "LD_LIBRARY_PATH",
                                                  why == nullptr ? file.c_str() : why));
  }
  return library;
}

template <class F>
void find(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  if (function == nullptr)
    throw Error(ErrorKind::resources, fmt::format("cuBLAS has no function {}; install the version of the build, {}.{}", name,
                                                  CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR));
}

}  // namespace

Functions::Functions() {
  void* const library = load();  // stays loaded until the program ends
  find(library, "cublasCreate_v2", create);
  find(library, "cublasDestroy_v2", destroy);
  find(library, "cublasGetProperty", get_property);
  find(library, "cublasGetStatusString", get_status_string);
  find(library, "cublasSetMathMode", set_math_mode);
  find(library, "cublasSetStream_v2", set_stream);
  find(library, "cublasSetWorkspace_v2", set_workspace);
  find(library, "cublasGemmEx", gemm_ex);
  find(library, "cublasDdot_v2", ddot);
  find(library, "cublasDaxpy_v2", daxpy);
  find(library, "cublasDscal_v2", dscal);
  find(library, "cublasDcopy_v2", dcopy);
  find(library, "cublasDdgmm", ddgmm);
  find(library, "cublasDgemmBatched", dgemm_batched);
  find(library, "cublasSgemmBatched", sgemm_batched);
  find(library, "cublasDgemmStridedBatched", dgemm_strided_batched);
  find(library, "cublasSgemmStridedBatched", sgemm_strided_batched);
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
