// cuBLAS on a batch whose matrices are stored densely, zeros and all, as Chainer Chemistry does: gemmBatched() takes three
// arrays of pointers, gemmStridedBatched() distances. Row-major operands are the transposes of column-major ones, so that Yᵀ
// = Xᵀ Aᵀ is what it computes.
#include <string>
#include <vector>

#include "tools/bench/batched_peers.h"
#include "tools/bench/cublas.h"

namespace shardmat::tools {
namespace {

using cublas::check;

class GemmBatched final : public BatchedPeer {
 public:
  GemmBatched(const PeerInput& input, bool strided, Stream& stream)
      : input_(input),
        strided_(strided),
        type_(input.batch.type),
        rows_(input.batch.at.most_rows),
        cols_(input.batch.at.most_cols),
        columns_(static_cast<int>(input.columns)),
        count_(static_cast<int>(input.batch.at.count())) {
    check(cublas::functions().set_math_mode(library_.handle, CUBLAS_DEFAULT_MATH),
          "cublasSetMathMode");  // f32 as f32, not TF32
    const auto of_a = static_cast<std::int64_t>(rows_) * cols_ * count_ * static_cast<std::int64_t>(size_of(type_));
    require_memory(stream.device(), of_a + static_cast<std::int64_t>(cublas::kWorkspace), "the matrices stored densely");
    workspace_ = Buffer(stream.device(), cublas::kWorkspace);
    dispatch(type_, [&](auto tag) { store_densely<typename decltype(tag)::type>(input.host, stream); });
    choice = cublas::version();
    if (!strided_) write_pointers(stream);
  }

  bool has_descriptors() const override { return !strided_; }
  void place(Stream& stream) override { copy_to_device_async(pointers_.data(), staging_.data(), pointers_.bytes(), stream); }

  void multiply(Stream& stream) override {
    check(cublas::functions().set_stream(library_.handle, stream.native()), "cublasSetStream");
    check(cublas::functions().set_workspace(library_.handle, workspace_.data(), workspace_.bytes()), "cublasSetWorkspace");
    const bool f64 = type_ == ValueType::f64;
    if (strided_ && f64) multiply_strided<double>(cublas::functions().dgemm_strided_batched, "cublasDgemmStridedBatched");
    else if (strided_) multiply_strided<float>(cublas::functions().sgemm_strided_batched, "cublasSgemmStridedBatched");
    else if (f64) multiply_batched<double>(cublas::functions().dgemm_batched, "cublasDgemmBatched");
    else multiply_batched<float>(cublas::functions().sgemm_batched, "cublasSgemmBatched");
  }

 private:
  template <class T>
  void store_densely(const BatchView& batch, Stream& stream) {
    const std::size_t cols = static_cast<std::size_t>(cols_);
    std::vector<T> dense(static_cast<std::size_t>(batch.rows()) * cols);
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch.rows()); ++row)
      for (std::int64_t k = batch.row_ptr[row] - batch.row_ptr[0]; k < batch.row_ptr[row + 1] - batch.row_ptr[0]; ++k) {
        const auto entry = static_cast<std::size_t>(k);
        dense[row * cols + static_cast<std::size_t>(batch.col_idx[entry])] += static_cast<T>(batch.values[entry]);
      }
    a_ = Buffer(stream.device(), dense.size() * sizeof(T));
    copy_to_device(a_.data(), dense.data(), a_.bytes(), stream);
  }

  // Entries from one matrix to the next.
  std::int64_t a_stride() const { return std::int64_t{rows_} * cols_; }
  std::int64_t x_stride() const { return std::int64_t{cols_} * columns_; }
  std::int64_t y_stride() const { return std::int64_t{rows_} * columns_; }

  void write_pointers(Stream& stream) {
    const std::size_t bytes = 3 * static_cast<std::size_t>(count_) * sizeof(void*);
    staging_.reserve(bytes, stream.device(), true);
    pointers_ = Buffer(stream.device(), bytes);
    auto* const pointers = staging_.as<const void*>();
    const auto value = static_cast<std::int64_t>(size_of(type_));
    for (int i = 0; i < count_; ++i) {
      pointers[i] = static_cast<const std::byte*>(input_.x) + i * x_stride() * value;
      pointers[count_ + i] = a_.as<std::byte>() + i * a_stride() * value;
      pointers[2 * count_ + i] = static_cast<const std::byte*>(input_.y) + i * y_stride() * value;
    }
    place(stream);
    stream.synchronize();
  }

  template <class T>
  void multiply_strided(const auto& gemm, const char* call) {
    const T one = 1, zero = 0;
    check(gemm(library_.handle, CUBLAS_OP_N, CUBLAS_OP_N, columns_, rows_, cols_, &one, static_cast<const T*>(input_.x),
               columns_, x_stride(), a_.as<T>(), cols_, a_stride(), &zero, static_cast<T*>(input_.y), columns_, y_stride(),
               count_),
          call);
  }

  template <class T>
  void multiply_batched(const auto& gemm, const char* call) {
    const T one = 1, zero = 0;
    const auto* x = pointers_.as<const T*>();
    check(gemm(library_.handle, CUBLAS_OP_N, CUBLAS_OP_N, columns_, rows_, cols_, &one, x, columns_, x + count_, cols_,
               &zero, pointers_.as<T*>() + 2 * count_, columns_, count_),
          call);
  }

  PeerInput input_;
  bool strided_;
  ValueType type_;
  int rows_, cols_, columns_, count_;
  cublas::Handle library_;
  Buffer workspace_, a_, pointers_;
  HostBuffer staging_;
};

}  // namespace

Peers make_cublas_gemm_batched(const PeerInput& input, Stream& stream) {
  Peers peers;
  peers.push_back(std::make_unique<GemmBatched>(input, false, stream));
  return peers;
}

Peers make_cublas_gemm_strided(const PeerInput& input, Stream& stream) {
  Peers peers;
  peers.push_back(std::make_unique<GemmBatched>(input, true, stream));
  return peers;
}

}  // namespace shardmat::tools
