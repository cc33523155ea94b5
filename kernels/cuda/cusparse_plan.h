// cuSPARSE's generic SpMV on a matrix in any of its formats, with a fixed algorithm and preprocessing. Each plan has its own
// buffer: since CUDA 12.4 a buffer belongs to one matrix and must not be touched between calls.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/base/cusparse_library.h"
#include "kernels/base/error.h"
#include "kernels/plan.h"

namespace shardmat::cuda {

/// For a failed call throws Error(resources) if memory or support by the device is missing, else Error(internal). The
/// message names the call.
inline void check(cusparseStatus_t status, const char* call) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  const bool lacking = status == CUSPARSE_STATUS_INSUFFICIENT_RESOURCES || status == CUSPARSE_STATUS_ARCH_MISMATCH ||
                       status == CUSPARSE_STATUS_NOT_SUPPORTED;
  throw Error(lacking ? ErrorKind::resources : ErrorKind::internal,
              std::string("cuSPARSE: ") + cusparse().GetErrorString(status) + " in " + call);
}

inline cudaDataType cuda_type(ValueType type) {
  switch (type) {
    case ValueType::f16:
      return CUDA_R_16F;
    case ValueType::bf16:
      return CUDA_R_16BF;
    case ValueType::f32:
      return CUDA_R_32F;
    default:
      return CUDA_R_64F;
  }
}

template <class Handle, auto destroy>
struct CusparseObject {
  CusparseObject() = default;
  CusparseObject(const CusparseObject&) = delete;
  CusparseObject& operator=(const CusparseObject&) = delete;
  ~CusparseObject() {
    if (handle != nullptr) (cusparse().*destroy)(handle);
  }
  Handle handle = nullptr;
};

/// The library's state on one device. Its calls work on the calling thread's current device: a DeviceGuard goes before them.
struct CusparseLibrary {
  explicit CusparseLibrary(Device where) : device(where) {
    const DeviceGuard guard(device);
    check(cusparse().Create(&handle), "cusparseCreate");
  }
  CusparseLibrary(const CusparseLibrary&) = delete;
  CusparseLibrary& operator=(const CusparseLibrary&) = delete;
  ~CusparseLibrary() {
    const DeviceGuard guard(device, std::nothrow);
    cusparse().Destroy(handle);
  }
  Device device;
  cusparseHandle_t handle = nullptr;
};

/// alpha or beta in the type that the library reads.
class Scalar {
 public:
  Scalar(double value, cudaDataType type) : f64_(value), f32_(static_cast<float>(value)), type_(type) {}
  const void* data() const { return type_ == CUDA_R_64F ? static_cast<const void*>(&f64_) : &f32_; }

 private:
  double f64_;
  float f32_;
  cudaDataType type_;
};

/// Makes the library's view of the storage's arrays. The storage outlives the view.
using CreateMatrix = std::function<cusparseStatus_t(cusparseSpMatDescr_t* matrix, cudaDataType type)>;

/// REQUIRES: the matrix has rows, columns and nonzeros; the library accepts no empty matrix. `reproducible`: what the
/// library's manual promises for the algorithm.
std::unique_ptr<Plan> make_cusparse_plan(std::shared_ptr<Storage> storage, cusparseSpMVAlg_t algorithm, bool reproducible,
                                         const CreateMatrix& create, Stream& stream);

/// True if the product is only y = beta·y, which the library does not support.
inline bool is_empty(const Storage& storage) { return storage.rows == 0 || storage.cols == 0 || storage.nnz == 0; }

}  // namespace shardmat::cuda
