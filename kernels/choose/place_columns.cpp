#include "kernels/choose/place_columns.h"

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/formats/csr.h"
#include "kernels/formats/packed.h"
#include "kernels/formats/packed_build.h"

namespace shardmat {
namespace {

/// Memory for a number for each place of the only value array.
Buffer numbers_of_places(const Storage& storage) {
  const auto places = static_cast<std::int64_t>(storage.value_arrays().at(0)->bytes() / size_of(storage.type));
  const auto bytes = places * static_cast<std::int64_t>(sizeof(std::int32_t));
  require_memory(storage.device, bytes, "the columns of stored values");
  return Buffer(storage.device, static_cast<std::size_t>(bytes));
}

}  // namespace

std::optional<Buffer> place_columns(const Storage& storage, Stream& stream) {
  if (storage.format == "csr") {
    Buffer columns = numbers_of_places(storage);
    copy_on_device(columns.data(), static_cast<const CsrStorage&>(storage).col_idx.data(), columns.bytes(), stream);
    return columns;
  }
#ifdef SHARDMAT_HAVE_CUDA
  if (storage.format == "packed" && storage.device.backend == Backend::cuda && !is_half(storage.type)) {
    Buffer columns = numbers_of_places(storage);
    packed::find_columns(static_cast<const PackedStorage&>(storage), columns.as<std::int32_t>(), stream);
    return columns;
  }
#endif
  return std::nullopt;
}

}  // namespace shardmat
