#include "tools/bench/cublas.h"
#include "tools/bench/dense_gemm.h"

namespace shardmat::tools {
namespace {

class CublasGemm final : public DenseGemm {
 public:
  CublasGemm(std::int64_t rows, std::int64_t in, std::int64_t out, bool tf32, Device device)
      : rows_(static_cast<int>(rows)), in_(static_cast<int>(in)), out_(static_cast<int>(out)), tf32_(tf32) {
    require_memory(device, static_cast<std::int64_t>(cublas::kWorkspace), "the workspace of cuBLAS");
    workspace_ = Buffer(device, cublas::kWorkspace);
  }
  /// Row-major operands are the transposes of column-major ones, so that Zᵀ = Wᵀ Xᵀ is what it computes.
  void multiply(const void* x, const void* w, void* z, Stream& stream) override {
    const float one = 1, zero = 0;
    cublas::check(cublas::functions().set_stream(library_.handle, stream.native()), "cublasSetStream");
    cublas::check(cublas::functions().set_workspace(library_.handle, workspace_.data(), workspace_.bytes()),
                  "cublasSetWorkspace");
    cublas::check(
        cublas::functions().gemm_ex(library_.handle, CUBLAS_OP_N, CUBLAS_OP_N, out_, rows_, in_, &one, w, CUDA_R_32F, out_,
                                    x, CUDA_R_32F, in_, &zero, z, CUDA_R_32F, out_,
                                    tf32_ ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  }

 private:
  int rows_, in_, out_;
  bool tf32_;
  cublas::Handle library_;
  Buffer workspace_;
};

}  // namespace

std::unique_ptr<DenseGemm> make_dense_gemm(std::int64_t rows, std::int64_t in, std::int64_t out, bool tf32, Device device) {
  return std::make_unique<CublasGemm>(rows, in, out, tf32, device);
}

}  // namespace shardmat::tools
