#include "partition/new_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "kernels/base/error.h"
#include "partition/hdf5/shard_file_format.h"
#include "partition/readers/hdf5_kind.h"
#include "partition/readers/matrix_market.h"
#include "partition/readers/reader.h"
#include "partition/shard/shard_file.h"
#include "partition/source/permuted_source.h"
#include "partition/vectors/vector_file.h"

namespace shardmat {
namespace {

[[noreturn]] void fail(const std::string& file, const std::string& what, const std::string& setting = {}) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", file, what), setting);
}

/// A source of rows, and the same rows in their original order, which is the source itself if it is not permuted.
struct Ordered {
  std::unique_ptr<RowSource> source, unpermuted;

  Ordered() = default;
  explicit Ordered(std::unique_ptr<RowSource> rows) : source(std::move(rows)) {
    if (source->permuted()) unpermuted = make_original_order_source(*source, read_row_pointers(*source));
  }
  const RowSource& original() const { return unpermuted ? *unpermuted : *source; }
};

/// The values of rows of the original order that begin at `first_row` and have the pattern of `rows`.
using TakeValues = std::function<HostVector<double>(std::int64_t first_row, const HostCsr& rows)>;

class RowsWithValues final : public RowSource {
 public:
  /// Keeps a reference to `pattern`.
  RowsWithValues(const RowSource& pattern, TakeValues take) : pattern_(pattern), take_(std::move(take)) {}

  std::int64_t rows() const override { return pattern_.rows(); }
  std::int64_t cols() const override { return pattern_.cols(); }
  std::string name() const override { return pattern_.name(); }
  HostVector<std::int64_t> row_lengths(std::int64_t begin, std::int64_t end) const override {
    return pattern_.row_lengths(begin, end);
  }
  HostCsr read_rows(std::int64_t begin, std::int64_t end) const override {
    HostCsr part = pattern_.read_rows(begin, end);
    part.values = take_(begin, part);
    return part;
  }
  std::int64_t best_end(std::int64_t begin, std::int64_t end) const override { return pattern_.best_end(begin, end); }

 private:
  const RowSource& pattern_;
  TakeValues take_;
};

/// `values` are of the nonzeros from `first` on, in the original order.
void require_finite(const std::string& name, std::int64_t first, const HostVector<double>& values) {
  const auto wrong = std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
  if (wrong != values.end())
    fail(name,
         fmt::format("the value of nonzero {} is {}; correct it, or accept values that are not finite",
                     first + (wrong - values.begin()), *wrong),
         "allow_nonfinite");
}

/// From a vector with an entry for each nonzero.
TakeValues from_vector(const std::string& name, const std::string& matrix, HostVector<std::int64_t> row_ptr,
                       bool allow_nonfinite) {
  const auto vector = std::make_shared<const VectorFile>(name, "values");
  if (vector->size() != row_ptr.back())
    fail(name, fmt::format("it has {} entries, but {} has {} nonzeros", vector->size(), matrix, row_ptr.back()));
  const auto starts = std::make_shared<const HostVector<std::int64_t>>(std::move(row_ptr));
  return [=](std::int64_t first_row, const HostCsr& rows) {
    const std::int64_t begin = (*starts)[static_cast<std::size_t>(first_row)];
    HostVector<double> values = vector->read(begin, begin + rows.nnz());
    if (!allow_nonfinite) require_finite(name, begin, values);
    return values;
  };
}

/// From a matrix with the same pattern.
TakeValues from_matrix(const std::string& name, Ordered matrix, const RowSource& pattern, std::int64_t nnz,
                       bool allow_nonfinite) {
  const RowSource& rows = matrix.original();
  const auto starts = std::make_shared<const HostVector<std::int64_t>>(read_row_pointers(rows));
  const std::int64_t found = starts->back();
  if (rows.rows() != pattern.rows() || rows.cols() != pattern.cols() || found != nnz)
    fail(name, fmt::format("its matrix is {} × {} with {} nonzeros, but {} is {} × {} with {}", rows.rows(), rows.cols(),
                           found, pattern.name(), pattern.rows(), pattern.cols(), nnz));
  const auto kept = std::make_shared<const Ordered>(std::move(matrix));
  return [=, pattern_name = pattern.name()](std::int64_t first_row, const HostCsr& wanted) {
    HostCsr part = kept->original().read_rows(first_row, first_row + wanted.rows);
    for (std::int64_t i = 0; i < wanted.rows; ++i) {
      const auto row = static_cast<std::size_t>(i);
      const auto begin = part.row_ptr[row], end = part.row_ptr[row + 1];
      if (begin != wanted.row_ptr[row] || end != wanted.row_ptr[row + 1] ||
          !std::equal(part.col_idx.begin() + begin, part.col_idx.begin() + end, wanted.col_idx.begin() + begin))
        fail(name, fmt::format("its nonzeros in row {} lie in other columns than those of {}; the patterns must be the same",
                               first_row + i, pattern_name));
    }
    if (!allow_nonfinite) require_finite(name, (*starts)[static_cast<std::size_t>(first_row)], part.values);
    return std::move(part.values);
  };
}

/// The matrix that `name` means; nothing if it means a vector.
std::optional<Ordered> open_as_matrix(const std::string& name, bool allow_nonfinite) {
  const DatasetName parts = split_dataset_name(name);
  if (has_hdf5_suffix(parts.file)) {
    const Hdf5Kind kind = kind_of(Hdf5File::open(parts.file));
    const bool as_it_is = parts.dataset == shard_format::kValues && kind == Hdf5Kind::shard_file;
    if (!as_it_is && (!parts.dataset.empty() || (kind != Hdf5Kind::shard_file && kind != Hdf5Kind::binsparse))) return {};
    auto file = ShardFile::open(parts.file, allow_nonfinite);
    if (as_it_is) file->leave_values_unchecked();
    return Ordered(std::move(file));
  }
  const std::filesystem::path path(name);
  if (path.extension() == ".npy") return {};
  std::error_code error;
  if (path.extension() == ".mtx" && std::filesystem::is_regular_file(path, error))
    if (matrix_market::read_header(*TextSource::open(path, {})).layout == matrix_market::Layout::array) return {};
  ReadOptions read;
  read.allow_nonfinite = allow_nonfinite;
  return Ordered(make_memory_source(std::make_shared<const HostCsr>(read_matrix(path, read)), name));
}

}  // namespace

void write_new_values(const std::filesystem::path& output, const std::filesystem::path& matrix, const std::string& values,
                      const NewValuesOptions& options) {
  auto file = ShardFile::open(matrix, options.allow_nonfinite);
  const ShardFile& stored = *file;
  file->leave_values_unchecked();
  WriteOptions write;
  write.how = options.how;
  write.source_checksum = stored.source_checksum();
  write.sort_local = stored.wants_local_sort();
  write.node_block_size = stored.node_block_size();
  write.allow_nonfinite = stored.allows_nonfinite();
  write.nodes = &stored;
  write.progress = options.progress;
  for (const StoredPartition& partition : stored.partitions()) write.partitions.push_back(partition.partition);

  const Ordered pattern(std::move(file));
  const RowSource& rows = pattern.original();
  const HostVector<std::int64_t> row_ptr = read_row_pointers(rows);
  std::optional<Ordered> other = open_as_matrix(values, write.allow_nonfinite);
  const RowsWithValues result(rows, other
                                        ? from_matrix(values, std::move(*other), rows, row_ptr.back(), write.allow_nonfinite)
                                        : from_vector(values, matrix.string(), row_ptr, write.allow_nonfinite));
  std::unique_ptr<RowSource> in_order;
  if (stored.permuted())
    in_order = make_reordered_source(result, stored.permutation(0, stored.rows()), row_ptr, stored.row_order());
  write_shard_file(output, in_order ? *in_order : static_cast<const RowSource&>(result), write);
}

}  // namespace shardmat
