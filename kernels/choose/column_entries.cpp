#include "kernels/choose/column_entries.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/memory_limits.h"
#include "kernels/choose/value_map.h"
#include "kernels/formats/upload.h"

namespace shardmat {
namespace {

/// The place of the value of each nonzero of the input.
HostVector<std::int64_t> places_of_values(Storage& storage, ConversionInput& input) {
  if (storage.format == "csr") {  // in the order of the input; a storage may share the rows' values, which nobody may change
    HostVector<std::int64_t> places(static_cast<std::size_t>(storage.nnz));
    std::iota(places.begin(), places.end(), std::int64_t{0});
    return places;
  }
  return ValueMap(storage, input).places(input.stream());
}

}  // namespace

ColumnEntries::ColumnEntries(Storage& storage, ConversionInput& input) : columns_(storage.cols), nnz_(storage.nnz) {
  std::int64_t most = 0;
  for (const Buffer* array : storage.value_arrays())
    most += static_cast<std::int64_t>(array->bytes() / size_of(storage.type));
  if (most > std::int64_t{std::numeric_limits<std::uint32_t>::max()} ||
      storage.rows > std::numeric_limits<std::int32_t>::max())
    throw Error(
        ErrorKind::resources,
        fmt::format("{} rows and {} places of values are too many for the map of a transposed product; use more ranks",
                    storage.rows, most));
  constexpr const char* kWhat = "the map of the columns for a transposed product";
  require_host_memory(16 * nnz_ + 8 * columns_, kWhat);
  require_memory(storage.device, 8 * nnz_ + 8 * (columns_ + 1), kWhat);
  const HostVector<std::int64_t> places = places_of_values(storage, input);
  const CsrView& matrix = input.matrix();
  HostVector<std::int64_t> starts(static_cast<std::size_t>(columns_) + 1);
  std::fill(starts.begin(), starts.end(), std::int64_t{0});
  for (std::int64_t k = 0; k < nnz_; ++k)
    ++starts[static_cast<std::size_t>(matrix.col_idx[static_cast<std::size_t>(k)]) + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  HostVector<std::int64_t> next(starts.begin(), starts.end());
  HostVector<std::uint32_t> place_of(static_cast<std::size_t>(nnz_));
  HostVector<std::int32_t> row_of(static_cast<std::size_t>(nnz_));
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto i = static_cast<std::size_t>(row);
    for (std::int64_t k = matrix.row_ptr[i] - matrix.row_ptr[0]; k < matrix.row_ptr[i + 1] - matrix.row_ptr[0]; ++k) {
      const auto at =
          static_cast<std::size_t>(next[static_cast<std::size_t>(matrix.col_idx[static_cast<std::size_t>(k)])]++);
      row_of[at] = static_cast<std::int32_t>(row);
      place_of[at] = static_cast<std::uint32_t>(places[static_cast<std::size_t>(k)]);
    }
  }
  Stream& stream = input.stream();
  starts_ = upload<std::int64_t>(starts, stream);
  rows_ = upload<std::int32_t>(row_of, stream);
  places_ = upload<std::uint32_t>(place_of, stream);
  stream.synchronize();
}

std::int64_t ColumnEntries::bytes() const {
  return static_cast<std::int64_t>(starts_.bytes() + rows_.bytes() + places_.bytes());
}

}  // namespace shardmat
