// cuBLAS for the benchmarks, with its errors as ours. A benchmark that needs the library loads it: loading takes 55 ms of
// CPU time, and if the program were linked with it, each rank of each command would spend this time at its start.
#pragma once

#include <cublas_v2.h>

#include <cstddef>
#include <string>

namespace shardmat::tools::cublas {

constexpr std::size_t kWorkspace = std::size_t{32} << 20;  ///< what the library advises on its largest devices

/// The functions that the benchmarks call. cublas_v2.h gives their types.
struct Functions {
  Functions();
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasGetProperty) get_property = nullptr;
  decltype(&cublasGetStatusString) get_status_string = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  /// The header overloads this name for C++.
  cublasStatus_t (*gemm_ex)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType, int lda, const void* b, cudaDataType, int ldb, const void* beta,
                            void* c, cudaDataType, int ldc, cublasComputeType_t, cublasGemmAlgo_t) = nullptr;
  decltype(&cublasDdot_v2) ddot = nullptr;
  decltype(&cublasDaxpy_v2) daxpy = nullptr;
  decltype(&cublasDscal_v2) dscal = nullptr;
  decltype(&cublasDcopy_v2) dcopy = nullptr;
  decltype(&cublasDdgmm) ddgmm = nullptr;
  decltype(&cublasDgemmBatched) dgemm_batched = nullptr;
  decltype(&cublasSgemmBatched) sgemm_batched = nullptr;
  decltype(&cublasDgemmStridedBatched) dgemm_strided_batched = nullptr;
  decltype(&cublasSgemmStridedBatched) sgemm_strided_batched = nullptr;
};

/// Loads the library at the first call. Throws a resources error if it or a function is missing. Any thread may call it.
const Functions& functions();

/// Throws what `status` means, unless it is success. `call` is the function's name.
void check(cublasStatus_t status, const char* call);

struct Handle {
  Handle() { check(functions().create(&handle), "cublasCreate"); }
  ~Handle() { functions().destroy(handle); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  cublasHandle_t handle = nullptr;
};

/// "cuBLAS 13.1.0", the library that was loaded.
std::string version();

}  // namespace shardmat::tools::cublas
