#include "kernels/conversion.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/parallel.h"
#include "kernels/matrix/rows.h"

namespace shardmat {
namespace {

constexpr std::int64_t kRowsAtLeast = 1 << 12;  // for a thread

}  // namespace

ConversionInput::ConversionInput(const CsrView& matrix, ValueType type, Stream& stream)
    : matrix_(matrix), type_(type), stream_(stream), rows_(row_statistics(matrix.row_ptr)) {
  require_rows();
}

void ConversionInput::require_rows() const {
  if (releases() && matrix_.release->began())
    throw Error(
        ErrorKind::usage,
        "the rows were released while they were stored in another format; load the matrix again, or keep its host rows");
}

bool ConversionInput::ascends() {
  if (ascends_) return *ascends_;
  const Rows rows(matrix_);
  std::atomic<bool> all = true;
  parallel_ranges(rows.count(), kRowsAtLeast, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      if (!std::is_sorted(rows.columns() + rows.begin(i), rows.columns() + rows.end(i))) all = false;
  });
  ascends_ = all;
  return all;
}

const CsrView& ConversionInput::ascending() {
  if (ascending_) return *ascending_;
  ascending_ = matrix_;
  if (ascends()) return *ascending_;
  const Rows rows(matrix_);
  require_host_memory(16 * matrix_.nnz(), "a copy of the matrix with its columns in order");
  ascending_columns_.resize(matrix_.col_idx.size());
  ascending_values_.resize(matrix_.values.size());
  parallel_ranges(rows.count(), kRowsAtLeast, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::pair<std::int64_t, double>> row;
    for (std::int64_t i = begin; i < end; ++i) {
      row.clear();
      for (std::int64_t k = rows.begin(i); k < rows.end(i); ++k) row.emplace_back(rows.column(k), rows.values()[k]);
      std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (std::size_t j = 0; j < row.size(); ++j) {
        const std::size_t k = static_cast<std::size_t>(rows.begin(i)) + j;
        ascending_columns_[k] = row[j].first, ascending_values_[k] = row[j].second;
      }
    }
  });
  ascending_->col_idx = ascending_columns_, ascending_->values = ascending_values_;
  ascending_->owner = nullptr, ascending_->release = nullptr;
  return *ascending_;
}

}  // namespace shardmat
