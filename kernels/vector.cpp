#include "kernels/vector.h"

#include "kernels/base/error.h"
#include "kernels/vector_backends.h"

namespace shardmat {
namespace {

const VectorBackend& backend_of(const Stream& stream) {
#ifdef SHARDMAT_HAVE_CUDA
  if (stream.device().backend == Backend::cuda) return cuda_vector_backend;
#else
  (void)stream;
#endif
  return host_vector_backend;
}

}  // namespace

DotProducts::DotProducts(Device device) : partial_(device, (2 * kDotBlocks + 1) * sizeof(double)) {
  Stream stream(device);
  fill_bytes(partial_.data(), 0, partial_.bytes(), stream);
  stream.synchronize();
}

void DotProducts::compute(ValueType type, std::int64_t n, const void* x, const void* y, double* result, Stream& stream) {
  backend_of(stream).dots(type, n, x, y, partial_.as<double>(), result, stream);
}

void normalise(ValueType type, std::int64_t n, const void* y, const double* norm_squared, void* x, Stream& stream) {
  backend_of(stream).normalise(type, n, y, norm_squared, x, stream);
}

void gather_entries(std::size_t entry_bytes, std::int64_t n, const std::int32_t* places, const void* from, void* to,
                    Stream& stream) {
  backend_of(stream).gather(entry_bytes, n, places, from, to, stream);
}

void copy_rows(std::size_t row_bytes, std::int64_t n, const void* from, std::size_t from_apart, void* to,
               std::size_t to_apart, Stream& stream) {
  backend_of(stream).copy_rows(row_bytes, n, from, from_apart, to, to_apart, stream);
}

}  // namespace shardmat
