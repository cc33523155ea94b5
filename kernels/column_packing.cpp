#include "kernels/column_packing.h"

#include "kernels/column_packing_backends.h"

namespace shardmat {

void pack_columns(ValueType type, std::int64_t n, std::span<const void* const> vectors, void* to, std::int64_t width,
                  Stream& stream) {
#ifdef SHARDMAT_HAVE_CUDA
  if (stream.device().backend == Backend::cuda) return pack_columns_cuda(type, n, vectors, to, width, stream);
#else
  static_cast<void>(stream);
#endif
  pack_columns_host(type, n, vectors, to, width);
}

void unpack_columns(ValueType type, std::int64_t n, const void* sums, std::int64_t width,
                    std::span<const UnpackedColumn> columns, Stream& stream) {
#ifdef SHARDMAT_HAVE_CUDA
  if (stream.device().backend == Backend::cuda) return unpack_columns_cuda(type, n, sums, width, columns, stream);
#else
  static_cast<void>(stream);
#endif
  unpack_columns_host(type, n, sums, width, nullptr, columns, Backend::host);
}

void unpack_columns_on_host(ValueType type, const void* sums, std::int64_t width, std::span<const std::int64_t> places,
                            std::span<const UnpackedColumn> columns, Device device) {
  unpack_columns_host(type, std::ssize(places), sums, width, places.data(), columns, device.backend);
}

}  // namespace shardmat
