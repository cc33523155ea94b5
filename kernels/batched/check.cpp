#include "kernels/batched/check.h"

#include <fmt/format.h>

#include <vector>

#include "kernels/base/error.h"
#include "kernels/batched/check_faults.h"

namespace shardmat {
namespace {

batched::Faults find_on_host(const DeviceBatch& batch) {
  const BatchOffsets& at = batch.at;
  const batched::CheckedBatch b{at.first_row.data(),
                                at.first_col.data(),
                                at.first_entry.data(),
                                batch.row_ptr,
                                batch.row_idx,
                                batch.col_idx,
                                static_cast<std::int32_t>(at.count())};
  batched::Faults faults;
  for (std::int32_t row = 0; batch.row_ptr != nullptr && row < at.rows(); ++row)
    if (wrong_row(b, row)) {
      faults.row = row;
      break;
    }
  for (std::int32_t entry = 0; entry < at.nnz(); ++entry)
    if (wrong_entry(b, entry)) {
      faults.entry = entry;
      break;
    }
  return faults;
}

template <class E>
E read(const E* from, std::int64_t place, Stream& stream) {
  E entry;
  copy_to_host(&entry, from + place, sizeof entry, stream);
  return entry;
}

}  // namespace

void require_valid(const DeviceBatch& batch, Stream& stream) {
  const BatchOffsets& at = batch.at;
  const auto faults = batch.device.backend == Backend::cuda ? cuda::find_faults(batch, stream) : find_on_host(batch);
  const auto place = [&](std::int32_t of, const std::vector<std::int32_t>& first) {
    return static_cast<std::size_t>(batched::matrix_of(of, first.data(), static_cast<std::int32_t>(at.count())));
  };
  if (faults.row != batched::Faults::none) {
    const std::size_t matrix = place(faults.row, at.first_row);
    throw Error(
        ErrorKind::input,
        fmt::format("matrix {}, row {}: its row pointers go from {} to {}, its matrix's entries from {} to {}", matrix,
                    faults.row - at.first_row[matrix], read(batch.row_ptr, faults.row, stream),
                    read(batch.row_ptr, faults.row + 1, stream), at.first_entry[matrix], at.first_entry[matrix + 1]));
  }
  if (faults.entry != batched::Faults::none) {
    const std::size_t matrix = place(faults.entry, at.first_entry);
    const auto row =
        batch.row_idx == nullptr ? std::string() : fmt::format("row {}, ", read(batch.row_idx, faults.entry, stream));
    throw Error(
        ErrorKind::input,
        fmt::format("matrix {}, entry {}: {}column {} is outside its {} × {}", matrix, faults.entry - at.first_entry[matrix],
                    row, read(batch.col_idx, faults.entry, stream), at.first_row[matrix + 1] - at.first_row[matrix],
                    at.first_col[matrix + 1] - at.first_col[matrix]));
  }
}

}  // namespace shardmat
