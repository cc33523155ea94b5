#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/base/narrow.h"
#include "kernels/cuda/cusparse_plan.h"
#include "tools/bench/factors_library.h"

namespace shardmat::tools {
namespace {

using Matrix = cuda::CusparseObject<cusparseSpMatDescr_t, &cuda::CusparseCalls::DestroySpMat>;
using Vector = cuda::CusparseObject<cusparseDnVecDescr_t, &cuda::CusparseCalls::DestroyDnVec>;
using Description = cuda::CusparseObject<cusparseSpSVDescr_t, &cuda::CusparseCalls::SpSV_destroyDescr>;

template <class T>
Buffer upload(const std::vector<T>& values, Stream& stream) {
  Buffer buffer(stream.device(), values.size() * sizeof(T));
  copy_to_device(buffer.data(), values.data(), buffer.bytes(), stream);
  return buffer;
}

/// Rows of single entries, with a diagonal of ones.
template <class V>
struct Rows {
  std::vector<std::int32_t> start{0}, column;
  std::vector<V> value;

  Rows(const triangles::TriangleRows& t, std::int64_t size) {
    const V* const blocks = static_cast<const V*>(t.value);
    std::vector<std::int64_t> ascending;
    for (std::int64_t i = 0; i < t.count; ++i) {
      const std::int64_t q = t.reversed ? t.count - 1 - i : i;
      ascending.clear();
      for (std::int64_t k = t.start[q]; k < t.start[q + 1]; ++k) ascending.push_back(k);
      std::sort(ascending.begin(), ascending.end(), [&](auto a, auto b) { return t.column[a] < t.column[b]; });
      for (std::int64_t r = 0; r < size; ++r) {
        const auto put_diagonal = [&] { column.push_back(static_cast<std::int32_t>(i * size + r)), value.push_back(1); };
        if (t.reversed) put_diagonal();
        for (const std::int64_t k : ascending)
          for (std::int64_t c = 0; c < size; ++c) {
            column.push_back(static_cast<std::int32_t>(t.column[k] * size + c));
            value.push_back(blocks[(k * size + c) * size + r]);
          }
        if (!t.reversed) put_diagonal();
        start.push_back(narrow<std::int32_t>(column.size(), "entries of a triangle"));
      }
    }
  }
};

template <class V>
class Triangle {
 public:
  Triangle(const triangles::TriangleRows& t, std::int64_t size, cusparseHandle_t library, Stream& stream)
      : rows_(t, size),
        library_(library),
        stream_(stream),
        n_(t.count * size),
        start_(upload(rows_.start, stream)),
        column_(upload(rows_.column, stream)),
        value_(upload(rows_.value, stream)) {
    for (std::int64_t i = 0; i < n_; ++i) r_.push_back(static_cast<V>(static_cast<double>(i * 7 % 17 - 8) / 8));
    of_r_ = upload(r_, stream), of_x_ = Buffer(stream.device(), of_r_.bytes());
    using cuda::check;
    check(cuda::cusparse().CreateCsr(&matrix_.handle, n_, n_, std::ssize(rows_.column), start_.data(), column_.data(),
                                     value_.data(), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, kType),
          "cusparseCreateCsr");
    cusparseFillMode_t fill = t.reversed ? CUSPARSE_FILL_MODE_UPPER : CUSPARSE_FILL_MODE_LOWER;
    cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_UNIT;
    check(cuda::cusparse().SpMatSetAttribute(matrix_.handle, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill),
          "cusparseSpMatSetAttribute");
    check(cuda::cusparse().SpMatSetAttribute(matrix_.handle, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal, sizeof diagonal),
          "cusparseSpMatSetAttribute");
    check(cuda::cusparse().CreateDnVec(&b_.handle, n_, of_r_.data(), kType), "cusparseCreateDnVec");
    check(cuda::cusparse().CreateDnVec(&x_.handle, n_, of_x_.data(), kType), "cusparseCreateDnVec");
    check(cuda::cusparse().SpSV_createDescr(&description_.handle), "cusparseSpSV_createDescr");
    std::size_t bytes = 0;
    check(cuda::cusparse().SpSV_bufferSize(library_, kPlain, &one_, matrix_.handle, b_.handle, x_.handle, kType,
                                           CUSPARSE_SPSV_ALG_DEFAULT, description_.handle, &bytes),
          "cusparseSpSV_bufferSize");
    scratch_ = Buffer(stream.device(), bytes);
    check(cuda::cusparse().SpSV_analysis(library_, kPlain, &one_, matrix_.handle, b_.handle, x_.handle, kType,
                                         CUSPARSE_SPSV_ALG_DEFAULT, description_.handle, scratch_.data()),
          "cusparseSpSV_analysis");
    stream.synchronize();
  }

  void solve() {
    cuda::check(cuda::cusparse().SpSV_solve(library_, kPlain, &one_, matrix_.handle, b_.handle, x_.handle, kType,
                                            CUSPARSE_SPSV_ALG_DEFAULT, description_.handle),
                "cusparseSpSV_solve");
  }

  double error() {
    std::vector<V> x(r_.size());
    copy_to_host(x.data(), of_x_.data(), of_x_.bytes(), stream_);
    double worst = 0;
    for (std::size_t i = 0; i < r_.size(); ++i) {
      double left = static_cast<double>(r_[i]), scale = std::abs(left);
      for (auto k = static_cast<std::size_t>(rows_.start[i]); k < static_cast<std::size_t>(rows_.start[i + 1]); ++k) {
        const double term =
            static_cast<double>(rows_.value[k]) * static_cast<double>(x[static_cast<std::size_t>(rows_.column[k])]);
        left -= term, scale += std::abs(term);
      }
      const double relative = std::abs(left) / std::max(scale, 1e-30);
      worst = relative <= worst ? worst : relative;  // also NaN
    }
    return worst;
  }

 private:
  static constexpr cudaDataType kType = sizeof(V) == 4 ? CUDA_R_32F : CUDA_R_64F;
  static constexpr auto kPlain = CUSPARSE_OPERATION_NON_TRANSPOSE;
  const V one_ = 1;
  Rows<V> rows_;
  cusparseHandle_t library_;
  Stream& stream_;
  std::int64_t n_;
  std::vector<V> r_;
  Buffer start_, column_, value_, scratch_, of_r_, of_x_;
  Matrix matrix_;
  Vector b_, x_;
  Description description_;
};

template <class V>
class CusparseSolves final : public LibrarySolves {
 public:
  CusparseSolves(const triangles::HostFactors& f, Stream& stream)
      : stream_(stream),
        library_(stream.device()),
        lower_(f.lower, f.size, prepared(), stream),
        upper_(f.upper, f.size, library_.handle, stream) {}

  void apply() override {
    const DeviceGuard guard(stream_.device());
    lower_.solve(), upper_.solve();
  }
  double error() override { return std::max(lower_.error(), upper_.error()); }

 private:
  cusparseHandle_t prepared() {
    cuda::check(cuda::cusparse().SetStream(library_.handle, stream_.native()), "cusparseSetStream");
    return library_.handle;
  }

  Stream& stream_;
  cuda::CusparseLibrary library_;
  Triangle<V> lower_, upper_;
};

}  // namespace

std::unique_ptr<LibrarySolves> make_library_solves(const triangles::HostFactors& factors, Stream& stream) {
  if (stream.device().backend == Backend::host) return nullptr;
  const DeviceGuard guard(stream.device());
  if (factors.type == ValueType::f32) return std::make_unique<CusparseSolves<float>>(factors, stream);
  return std::make_unique<CusparseSolves<double>>(factors, stream);
}

}  // namespace shardmat::tools
