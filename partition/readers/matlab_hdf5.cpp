#include "partition/readers/matlab_hdf5.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/text.h"
#include "partition/files/first_bytes.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/hdf5_kind.h"
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace matlab_hdf5 {
namespace {

constexpr const char* kRows = "MATLAB_sparse";
constexpr const char* kClass = "MATLAB_class";
constexpr const char* kOctave = "OCTAVE_NEW_FORMAT";
constexpr std::size_t kMostObjects = 1000;

[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", place, what));
}

/// The names in a group; none of anything else.
std::vector<std::string> names_in(const Hdf5File& file, const std::string& group) {
  try {
    return file.children(group);
  } catch (const Error&) {
    return {};
  }
}

/// Where a group has its parts.
struct SparseParts {
  bool octave = false;
  std::string pointers, rows, values;
};

/// Nothing if the object of this name is no sparse matrix.
std::optional<SparseParts> sparse_parts(const Hdf5File& file, const std::string& name) {
  if (file.has(name + "/jc")) return SparseParts{false, name + "/jc", name + "/ir", name + "/data"};
  const std::string value = name + "/value";
  if (file.has_attribute(name, kOctave) && file.has(value + "/cidx"))
    return SparseParts{true, value + "/cidx", value + "/ridx", value + "/data"};
  return std::nullopt;
}

/// The number of rows of a sparse matrix.
std::int64_t rows_of(const Hdf5File& file, const std::string& name, const SparseParts& parts) {
  if (!parts.octave) return file.attribute<std::int64_t>(name, kRows);
  const Hdf5Dataset rows = file.dataset(name + "/value/nr");
  std::int64_t count = 0;
  if (rows.shape().size() > 1 || rows.size() != 1) fail(rows.place(), "it must be one number; write the file again");
  rows.read(0, 1, &count);
  return count;
}

Object sparse_object(const Hdf5File& file, const std::string& name, const SparseParts& parts) {
  Object object;
  object.name = name;
  try {
    object.rows = rows_of(file, name, parts);
    object.cols = file.dataset(parts.pointers).size() - 1;
    object.nnz = file.has(parts.values) ? file.dataset(parts.values).size() : 0;
  } catch (const Error& error) {
    object.fault = error.what();
  }
  return object;
}

Object dense_object(const Hdf5File& file, const std::string& name, const std::string& dataset) {
  Object object;
  object.name = name;
  object.sparse = false;
  try {
    const std::vector<std::int64_t> shape = file.dataset(dataset).shape();
    object.cols = shape.size() == 2 ? shape[0] : 1;
    object.rows = shape.empty() ? 1 : shape.back();
  } catch (const Error& error) {
    object.fault = error.what();
  }
  return object;
}

/// Adds what is in `group`, and in the groups below it.
void collect(const Hdf5File& file, const std::string& group, int depth, std::vector<Object>& objects) {
  constexpr int kDeepest = 8;
  for (const std::string& child : names_in(file, group)) {
    const std::string name = group == "/" ? "/" + child : group + "/" + child;
    if (objects.size() >= kMostObjects || depth > kDeepest || child.starts_with('#')) continue;  // MATLAB's own: #refs#
    if (const auto parts = sparse_parts(file, name)) objects.push_back(sparse_object(file, name, *parts));
    else if (const std::string dataset = array_dataset(file, name); !dataset.empty())
      objects.push_back(dense_object(file, name, dataset));
    else collect(file, name, depth + 1, objects);
  }
}

}  // namespace

bool has_signature(const std::filesystem::path& path) {
  using namespace std::string_view_literals;
  const std::string bytes = first_bytes(path, 2048 + 8);
  for (const std::size_t offset : {0, 512, 1024, 2048})
    if (offset < bytes.size() && std::string_view(bytes).substr(offset, 8) == "\x89HDF\r\n\x1a\n"sv) return true;
  return false;
}

std::string user_block() {
  std::string block = "MATLAB 7.3 MAT-file, Platform: GLNXA64, written by Shardmat HDF5 schema 1.00 .";
  block.resize(116, ' ');
  block.resize(124, '\0');
  block.append("\x00\x02IM", 4);
  block.resize(512, '\0');
  return block;
}

std::string absolute(const std::string& name) { return name.starts_with('/') ? name : "/" + name; }

std::string array_dataset(const Hdf5File& file, const std::string& name) {
  if (file.has_attribute(name, kClass) && names_in(file, name).empty()) return name;
  const std::string value = name + "/value";
  if (!file.has_attribute(name, kOctave) || !file.has(value) || !names_in(file, value).empty()) return "";
  return value;
}

std::vector<Object> objects_of(const std::filesystem::path& path) {
  std::vector<std::string> names = Hdf5File::open(path).children("/");
  if (names.size() > kMostObjects) names.resize(kMostObjects);
  for (std::string& name : names) name.insert(0, 1, '/');
  std::vector<Object> objects;
  collect(Hdf5File::open(path, names), "/", 0, objects);
  return objects;
}

std::string describe(const Object& object) {
  if (!object.fault.empty()) return "unreadable: " + object.fault;
  if (!object.sparse) return fmt::format("dense matrix, {} × {}", human_count(object.rows), human_count(object.cols));
  return fmt::format("sparse matrix, {} × {}, {}", human_count(object.rows), human_count(object.cols),
                     human_count(object.nnz, "nonzero"));
}

namespace {

std::string list_of(const std::vector<Object>& objects) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, objects.size()); ++i)
    text += fmt::format("{}:{} is a {}", i == 0 ? "" : "; ", objects[i].name, describe(objects[i]));
  if (objects.size() > kShown) text += fmt::format("; and {} more", objects.size() - kShown);
  return text;
}

/// The one sparse matrix in the file.
std::string only_matrix(const std::filesystem::path& path) {
  const std::vector<Object> objects = objects_of(path);
  const auto is_sparse = [](const Object& object) { return object.sparse; };
  const auto count = std::count_if(objects.begin(), objects.end(), is_sparse);
  if (count == 1) return std::find_if(objects.begin(), objects.end(), is_sparse)->name;
  if (count > 1)
    fail(path.string(), fmt::format("it has {} sparse matrices; name one, as {}:{}: {}", count, path.string(),
                                    std::find_if(objects.begin(), objects.end(), is_sparse)->name, list_of(objects)));
  if (!objects.empty())
    fail(path.string(),
         fmt::format("it has no sparse matrix; write one with A = sparse(A) in MATLAB: {}", list_of(objects)));
  const Hdf5File file = Hdf5File::open(path);
  fail(path.string(), why_no_matrix(file));
}

constexpr std::int64_t kBlock = 1 << 15;  ///< nonzeros converted at a time

/// Columns after one another; rank 0 reads them.
class MatlabEntries final : public EntryReader {
 public:
  MatlabEntries(const std::filesystem::path& path, const ReadOptions& options, const ReadLimits& limits)
      : file_(path), limits_(limits), name_(options.object.empty() ? only_matrix(path) : absolute(options.object)) {
    const Hdf5File hdf5 = Hdf5File::open(path, {name_});
    const std::optional<SparseParts> parts = sparse_parts(hdf5, name_);
    if (!parts) fail_no_matrix(hdf5);
    if (!parts->octave && !hdf5.has_attribute(name_, kRows))
      fail(place(), fmt::format("it has no attribute {}, the number of rows; write it with save -v7.3 of MATLAB", kRows));
    rows_ = rows_of(hdf5, name_, *parts);
    jc_ = hdf5.dataset(parts->pointers);
    cols_ = jc_.size() - 1;
    if (rows_ < 0 || cols_ < 0) fail(place(), fmt::format("it is {} × {}; the file is damaged", rows_, cols_));
    if (hdf5.has(parts->rows) || hdf5.has(parts->values)) {
      ir_ = hdf5.dataset(parts->rows);
      data_ = hdf5.dataset(parts->values);
      nnz_ = ir_.size();
      if (data_.size() != nnz_)
        fail(place(),
             fmt::format("ir has {} entries and data has {}; the file is damaged: write it again", nnz_, data_.size()));
      if (data_.type() == Hdf5Type::other)
        fail(data_.place(), "its values are no real numbers; write the real and the imaginary part as two real matrices");
    }
    for (const Hdf5Dataset* one : {&jc_, nnz_ > 0 ? &ir_ : &jc_, nnz_ > 0 ? &data_ : &jc_})
      if (one->shape().size() > 1 && one->shape()[1] != 1) fail(one->place(), "it must have one dimension; write it again");
  }

  std::int64_t rows() const override { return rows_; }
  std::int64_t cols() const override { return cols_; }
  std::int64_t most_entries() const override { return nnz_; }
  std::int64_t bytes_asked() const override {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 64;
    return rows_ > kMost || cols_ > kMost || nnz_ > kMost ? std::numeric_limits<std::int64_t>::max()
                                                          : 16 * rows_ + 8 * cols_ + 16 * nnz_;
  }
  const InputFile& file() const override { return file_; }
  bool is_divisible() const override { return false; }
  bool needs_validation() const override { return true; }
  void require_promised(std::int64_t) const override {}
  void fail(const TextFault& fault) override { throw Error(ErrorKind::input, place() + ": " + fault.what, fault.setting); }

  std::int64_t count(const FileShare&, const UseCounts& use, const Progress& after_batch) override {
    HostVector<std::int64_t> rows;
    std::vector<RowCount> counts;
    in_blocks("count entries", after_batch, [&](std::int64_t first, std::int64_t size) {
      read_rows(first, size, rows);
      counts.clear();
      for (const std::int64_t row : rows) counts.push_back({row, 1});
      use(counts);
    });
    return nnz_;
  }

  void read(const FileShare&, const UseEntries& use, const Progress& after_batch) override {
    read_pointers();
    HostVector<std::int64_t> rows;
    HostVector<double> values;
    std::vector<MatrixEntry> entries;
    std::size_t col = 0;
    in_blocks("read entries", after_batch, [&](std::int64_t first, std::int64_t size) {
      read_rows(first, size, rows);
      values.resize(static_cast<std::size_t>(size));
      data_.read(first, size, values.data());
      entries.clear();
      for (std::int64_t k = 0; k < size; ++k) {
        while (pointers_[col + 1] <= first + k) ++col;
        entries.push_back(
            {rows[static_cast<std::size_t>(k)], static_cast<std::int64_t>(col), values[static_cast<std::size_t>(k)]});
      }
      use(entries);
    });
    file_.require_unchanged();
  }

 private:
  [[noreturn]] static void fail(const std::string& place, const std::string& what) { matlab_hdf5::fail(place, what); }
  std::string place() const { return fmt::format("{}: group {}", file_.path().string(), name_); }

  [[noreturn]] void fail_no_matrix(const Hdf5File& hdf5) const {
    const std::string path = file_.path().string();
    if (hdf5.has(name_) && (names_in(hdf5, name_).empty() || !array_dataset(hdf5, name_).empty()))
      matlab_hdf5::fail(path,
                        fmt::format("{} is no sparse matrix but an array; write it with A = sparse(A) in MATLAB", name_));
    matlab_hdf5::fail(path, fmt::format("there is no sparse matrix {} in it: {}", name_, list_of(objects_of(file_.path()))));
  }

  void in_blocks(std::string_view phase, const Progress& after_batch,
                 const std::function<void(std::int64_t, std::int64_t)>& use) const {
    const std::int64_t batch = std::max<std::int64_t>(1, limits_.batch_bytes / 16);
    std::int64_t reported = 0;
    for (std::int64_t first = 0; first < nnz_; first += std::min(kBlock, batch)) {
      const std::int64_t end = std::min(nnz_, first + std::min(kBlock, batch));
      use(first, end - first);
      if (end - reported >= batch || end == nnz_) report(after_batch, phase, reported = end, nnz_);
    }
  }

  void read_rows(std::int64_t first, std::int64_t size, HostVector<std::int64_t>& rows) const {
    rows.resize(static_cast<std::size_t>(size));
    ir_.read(first, size, rows.data());
    for (std::int64_t k = 0; k < size; ++k)
      if (const std::int64_t row = rows[static_cast<std::size_t>(k)]; row < 0 || row >= rows_)
        fail(ir_.place(), fmt::format("entry {} is the row {}, which is out of range [0, {})", first + k, row, rows_));
  }

  /// Where columns begin; checked, so that every nonzero has a column.
  void read_pointers() {
    if (!pointers_.empty()) return;
    limits_.require_memory(8 * (cols_ + 1), file_.path());
    pointers_.resize(static_cast<std::size_t>(cols_) + 1);
    jc_.read(0, cols_ + 1, pointers_.data());
    if (pointers_.front() != 0 || pointers_.back() != nnz_ || !std::is_sorted(pointers_.begin(), pointers_.end())) {
      pointers_.clear();
      fail(jc_.place(),
           fmt::format("it must ascend from 0 to the {} entries of ir; the file is damaged: write it again", nnz_));
    }
  }

  InputFile file_;
  ReadLimits limits_;
  std::string name_;
  std::int64_t rows_ = 0, cols_ = 0, nnz_ = 0;
  Hdf5Dataset jc_, ir_, data_;
  HostVector<std::int64_t> pointers_;  ///< from the second pass on
};

}  // namespace
}  // namespace matlab_hdf5

bool accepts_matlab_hdf5(const std::filesystem::path& path) { return matlab_hdf5::has_signature(path); }

std::unique_ptr<EntryReader> open_matlab_hdf5_entries(const std::filesystem::path& path, const ReadOptions& options,
                                                      const ReadLimits& limits) {
  return std::make_unique<matlab_hdf5::MatlabEntries>(path, options, limits);
}

std::vector<FileObject> list_matlab_hdf5(const std::filesystem::path& path) {
  std::vector<FileObject> list;
  for (const matlab_hdf5::Object& object : matlab_hdf5::objects_of(path))
    list.push_back({object.name, matlab_hdf5::describe(object), object.sparse});
  return list;
}

}  // namespace shardmat
