#include "partition/batched/batch_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "kernels/base/at.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/batched/batch_list.h"
#include "partition/files/atomic_file.h"
#include "partition/files/json.h"
#include "partition/hdf5/file.h"
#include "partition/hdf5/writer.h"
#include "partition/readers/hdf5_kind.h"

namespace shardmat {
namespace {

constexpr const char* kRoot = "/";
constexpr const char* kDescriptor = "shardmat_batch";
constexpr const char* kFirstRow = "/first_row";
constexpr const char* kFirstColumn = "/first_column";
constexpr const char* kPointers = "/pointers_to_1";
constexpr const char* kIndices = "/indices_1";
constexpr const char* kValues = "/values";
constexpr std::int64_t kVersion = 1;

[[noreturn]] void reject(const std::string& place, const std::string& why) {
  throw Error(ErrorKind::input,
              fmt::format("{}: {}; the file is damaged or was not finished: copy or write it again", place, why));
}

/// One file being written, chunk after chunk.
class Writer {
 public:
  Writer(const AtomicFile& target, const BatchSource& source, const BatchWriteOptions& options)
      : source_(source), options_(options), file_(target, bytes(source, options)) {
    const nlohmann::ordered_json descriptor = {{"version", kVersion},
                                               {"number_of_matrices", source.count()},
                                               {"number_of_rows", source.rows()},
                                               {"number_of_columns", source.cols()},
                                               {"number_of_stored_values", source.nnz()},
                                               {"source", source.name()},
                                               {"how", options.how}};
    file_.write_attribute(kRoot, kDescriptor, descriptor.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    first_row_ = file_.create_dataset<std::int64_t>(kFirstRow, {source.count() + 1});
    first_column_ = file_.create_dataset<std::int64_t>(kFirstColumn, {source.count() + 1});
    pointers_ = file_.create_dataset<std::int64_t>(kPointers, {source.rows() + 1});
    indices_ = file_.create_dataset<std::int32_t>(kIndices, {source.nnz()});
    values_ = options.f32 ? file_.create_dataset<float>(kValues, {source.nnz()})
                          : file_.create_dataset<double>(kValues, {source.nnz()});
    for (Hdf5OutputDataset* offsets : {&first_row_, &first_column_, &pointers_}) offsets->write(0, 1, &written_.rows);  // 0
  }

  void append(HostBatch chunk) {
    const BatchView view = chunk.view();
    const BatchTotals more{view.count(), view.rows(), view.cols(), view.nnz()};
    write_values(chunk);
    indices_.write(written_.nnz, more.nnz, chunk.col_idx.data());
    write_offsets(first_row_, written_.count, written_.rows, chunk.first_row);
    write_offsets(first_column_, written_.count, written_.cols, chunk.first_col);
    write_offsets(pointers_, written_.rows, written_.nnz, chunk.row_ptr);
    written_ = {written_.count + more.count, written_.rows + more.rows, written_.cols + more.cols, written_.nnz + more.nnz};
    report(options_.progress, "writing", written_.nnz, source_.nnz());
  }

  void close() {
    for (Hdf5OutputDataset* dataset : {&first_row_, &first_column_, &pointers_, &indices_, &values_}) *dataset = {};
    file_.close();
  }

 private:
  static std::int64_t bytes(const BatchSource& source, const BatchWriteOptions& options) {
    return 16 * (source.count() + 1) + 8 * (source.rows() + 1) + (options.f32 ? 8 : 12) * source.nnz();
  }

  /// The offsets of a chunk, from 0, go behind the `written` ones that are there, the last of which is `shift`.
  static void write_offsets(Hdf5OutputDataset& dataset, std::int64_t written, std::int64_t shift,
                            HostVector<std::int64_t>& offsets) {
    for (std::int64_t& offset : offsets) offset += shift;
    dataset.write(written + 1, std::ssize(offsets) - 1, offsets.data() + 1);
  }

  void write_values(const HostBatch& chunk) {
    const std::int64_t count = std::ssize(chunk.values);
    if (!options_.f32) return values_.write(written_.nnz, count, chunk.values.data());
    HostVector<float> narrowed(chunk.values.size());
    std::transform(chunk.values.begin(), chunk.values.end(), narrowed.begin(),
                   [](double value) { return static_cast<float>(value); });
    const auto wrong = std::find_if(narrowed.begin(), narrowed.end(), [](float value) { return !std::isfinite(value); });
    if (wrong != narrowed.end()) {
      const BatchView view = chunk.view();
      std::int64_t matrix = 0, entry = wrong - narrowed.begin();
      for (; entry >= view.nnz_of(matrix); ++matrix) entry -= view.nnz_of(matrix);
      throw Error(ErrorKind::input,
                  fmt::format("{}: matrix {}, entry {}: {} is too large for f32; store the batch with f64 values",
                              source_.name(), written_.count + matrix, entry, chunk.values[at(wrong - narrowed.begin())]));
    }
    values_.write(written_.nnz, count, narrowed.data());
  }

  const BatchSource& source_;
  const BatchWriteOptions& options_;
  Hdf5Writer file_;
  Hdf5OutputDataset first_row_, first_column_, pointers_, indices_, values_;
  BatchTotals written_;
};

nlohmann::json descriptor(const Hdf5File& file) {
  if (!file.has_attribute(kRoot, kDescriptor))
    throw Error(ErrorKind::input, fmt::format("{}: {}", file.path(), why_no_batch(file)));
  const nlohmann::json json = parse_json(file.string_attribute(kRoot, kDescriptor),
                                         fmt::format("{}, attribute '{}'", file.path(), kDescriptor), kMostDescriptorBytes);
  if (!json.is_object()) reject(file.path(), fmt::format("its attribute '{}' is no JSON object", kDescriptor));
  return json;
}

std::int64_t integer_in(const Hdf5File& file, const nlohmann::json& json, const char* key) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  const nlohmann::json value = json.value(key, nlohmann::json());
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > kMost)
    reject(file.path(), fmt::format("its attribute '{}' has no whole number '{}'", kDescriptor, key));
  return value.get<std::int64_t>();
}

std::string text_in(const nlohmann::json& json, const char* key) {
  const nlohmann::json value = json.value(key, nlohmann::json());
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// A list of `size` whole (or real) numbers.
Hdf5Dataset typed(const Hdf5File& file, const char* name, std::int64_t size, bool integers) {
  Hdf5Dataset dataset = file.dataset(name);
  if (dataset.shape() != std::vector<std::int64_t>{size})
    reject(dataset.place(), fmt::format("its shape is [{}] but must be [{}]", fmt::join(dataset.shape(), ", "), size));
  const Hdf5Type type = dataset.type();
  const bool real = type == Hdf5Type::f32 || type == Hdf5Type::f64 || type == Hdf5Type::other_float;
  if (type == Hdf5Type::other || integers == real)
    reject(dataset.place(), fmt::format("it must hold {} numbers", integers ? "whole" : "real"));
  return dataset;
}

/// Offsets that run from 0 to `last`; what lies between is checked when it is read.
Hdf5Dataset offsets(const Hdf5File& file, const char* name, std::int64_t pieces, std::int64_t last) {
  Hdf5Dataset dataset = typed(file, name, pieces + 1, true);
  std::int64_t ends[2];
  dataset.read(0, 1, &ends[0]);
  dataset.read(pieces, 1, &ends[1]);
  if (ends[0] != 0 || ends[1] != last)
    reject(dataset.place(), fmt::format("it runs from {} to {} but must run from 0 to {}", ends[0], ends[1], last));
  return dataset;
}

/// The offsets [begin, end], none of which may fall or leave [0, last]. `piece` names what they lie between.
HostVector<std::int64_t> read_offsets(const Hdf5Dataset& dataset, std::int64_t begin, std::int64_t end, std::int64_t last,
                                      const char* piece) {
  require_host_memory(8 * (end - begin + 1), dataset.place().c_str());
  HostVector<std::int64_t> offsets(at(end - begin) + 1);
  dataset.read(begin, end - begin + 1, offsets.data());
  if (offsets.front() < 0 || offsets.back() > last)
    reject(dataset.place(),
           fmt::format("{}s [{}, {}) lie at [{}, {}) of {}", piece, begin, end, offsets.front(), offsets.back(), last));
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    if (offsets[i + 1] < offsets[i])
      reject(dataset.place(), fmt::format("{} {} begins at {} and ends at {}", piece, begin + static_cast<std::int64_t>(i),
                                          offsets[i], offsets[i + 1]));
  return offsets;
}

void count_from_zero(HostVector<std::int64_t>& offsets) {
  const std::int64_t first = offsets.front();
  for (std::int64_t& offset : offsets) offset -= first;
}

HostVector<std::int64_t> differences(const HostVector<std::int64_t>& offsets) {
  HostVector<std::int64_t> sizes(offsets.size() - 1);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = offsets[i + 1] - offsets[i];
  return sizes;
}

}  // namespace

void write_batch_file(const std::filesystem::path& path, const BatchSource& source, const BatchWriteOptions& options) {
  AtomicFile target(path);
  Writer writer(target, source, options);
  for_each_chunk(source, 0, source.count(),
                 [&](std::int64_t begin, std::int64_t end) { writer.append(source.read(begin, end)); });
  writer.close();
  target.commit();
}

std::vector<std::string> BatchFile::objects() { return {kFirstRow, kFirstColumn, kPointers, kIndices, kValues}; }

struct BatchFile::Impl {
  Hdf5File file;
  Hdf5Dataset first_row, first_column, pointers, indices, values;
  BatchTotals totals;
  std::string source, how;

  explicit Impl(const std::filesystem::path& path) : file(Hdf5File::open(path, objects())) {
    const nlohmann::json json = descriptor(file);
    const std::int64_t version = integer_in(file, json, "version");
    if (version != kVersion)
      throw Error(ErrorKind::input, fmt::format("{}: is a batch file of version {}; this program reads version {}",
                                                file.path(), version, kVersion));
    totals = {integer_in(file, json, "number_of_matrices"), integer_in(file, json, "number_of_rows"),
              integer_in(file, json, "number_of_columns"), integer_in(file, json, "number_of_stored_values")};
    source = text_in(json, "source");
    how = text_in(json, "how");
    first_row = offsets(file, kFirstRow, totals.count, totals.rows);
    if (!file.has(kFirstColumn) && totals.cols != totals.rows)
      reject(file.path(), fmt::format("it has no dataset {}, but the matrices are not square: {} rows and {} columns",
                                      kFirstColumn, totals.rows, totals.cols));
    first_column = offsets(file, file.has(kFirstColumn) ? kFirstColumn : kFirstRow, totals.count, totals.cols);
    pointers = offsets(file, kPointers, totals.rows, totals.nnz);
    indices = typed(file, kIndices, totals.nnz, true);
    values = typed(file, kValues, totals.nnz, false);
  }

  HostVector<std::int64_t> first_rows(std::int64_t begin, std::int64_t end) const {
    return read_offsets(first_row, begin, end, totals.rows, "matrix");
  }
  HostVector<std::int64_t> first_columns(std::int64_t begin, std::int64_t end) const {
    return read_offsets(first_column, begin, end, totals.cols, "matrix");
  }
  /// Where the entries of each matrix begin, given where its rows do. Reads the pointers a slice at a time.
  HostVector<std::int64_t> first_entries(const HostVector<std::int64_t>& first_rows) const {
    HostVector<std::int64_t> entries(first_rows.size());
    std::size_t next = 0;
    for (std::int64_t begin = first_rows.front(); next < entries.size(); begin += kSliceEntries) {
      const std::int64_t end = std::min(begin + kSliceEntries, first_rows.back());
      const HostVector<std::int64_t> slice = read_offsets(pointers, begin, end, totals.nnz, "stacked row");
      for (; next < entries.size() && first_rows[next] <= end; ++next) entries[next] = slice[at(first_rows[next] - begin)];
    }
    return entries;
  }
};

BatchFile::BatchFile(std::unique_ptr<Impl> impl) : BatchSource(impl->file.path(), impl->totals), impl_(std::move(impl)) {}
BatchFile::~BatchFile() = default;

std::unique_ptr<BatchFile> BatchFile::open(const std::filesystem::path& path) {
  return std::unique_ptr<BatchFile>(new BatchFile(std::make_unique<Impl>(path)));
}

const std::string& BatchFile::source() const { return impl_->source; }
const std::string& BatchFile::how() const { return impl_->how; }
bool BatchFile::f32() const { return impl_->values.type() == Hdf5Type::f32; }

BatchSizes BatchFile::sizes_of(std::int64_t begin, std::int64_t end) const {
  const HostVector<std::int64_t> first_rows = impl_->first_rows(begin, end);
  return {differences(first_rows), differences(impl_->first_columns(begin, end)),
          differences(impl_->first_entries(first_rows))};
}

HostBatch BatchFile::read_range(std::int64_t begin, std::int64_t end) const {
  HostBatch batch;
  batch.first_row = impl_->first_rows(begin, end);
  batch.first_col = impl_->first_columns(begin, end);
  batch.row_ptr =
      read_offsets(impl_->pointers, batch.first_row.front(), batch.first_row.back(), impl_->totals.nnz, "stacked row");
  const std::int64_t first = batch.row_ptr.front(), count = batch.row_ptr.back() - first;
  if (count > kSliceEntries) require_host_memory(12 * count, name().c_str());
  batch.col_idx.resize(at(count));
  batch.values.resize(at(count));
  impl_->indices.read(first, count, batch.col_idx.data());
  impl_->values.read(first, count, batch.values.data());
  for (auto* all : {&batch.first_row, &batch.first_col, &batch.row_ptr}) count_from_zero(*all);
  validate(batch.view(), name(), begin);
  return batch;
}

bool accepts_batch_file(const std::string& argument) {
  const auto suffix = std::filesystem::path(argument).extension();
  return suffix == ".h5" || suffix == ".hdf5";
}

std::unique_ptr<BatchSource> open_batch_file(const std::string& argument, const EdgeValues& edges) {
  refuse_choice(edges, argument);
  return BatchFile::open(argument);
}

}  // namespace shardmat
