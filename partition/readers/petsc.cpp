#include "partition/readers/petsc.h"
#include "partition/readers/complex_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

#include "kernels/base/error.h"
#include "kernels/base/host_vector.h"
#include "kernels/base/text.h"
#include "partition/files/big_endian.h"
#include "partition/files/first_bytes.h"
#include "partition/readers/reader_list.h"

namespace shardmat::petsc {
namespace {

constexpr std::size_t kMostObjects = 100'000;
constexpr std::int64_t kBlock = 1 << 17;  ///< row lengths read at a time
constexpr std::int64_t kUncounted = std::numeric_limits<std::int32_t>::max();
constexpr int kValueBytes = 8;

[[noreturn]] void fail(const InputFile& file, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", file.path().string(), what));
}

/// Reads the objects one after another. Members that find something wrong return what.
class Scan {
 public:
  explicit Scan(const InputFile& file) : file_(file) {}

  Contents operator()() {
    Contents contents;
    index_bytes_ = width();
    if (index_bytes_ == 0)
      fail(file_,
           "it is no PETSc binary file: it begins neither with a Mat (1211216) nor with a Vec (1211214). Write it with "
           "MatView() and a viewer of PetscViewerBinaryOpen()");
    while (at_ < file_.size() && contents.fault.empty() && contents.objects.size() < kMostObjects) {
      Object object;
      const std::int64_t begin = at_;
      const std::string wrong = next(object);
      if (wrong.empty()) contents.objects.push_back(object);
      else contents.fault = fmt::format("object {} at byte {} {}", contents.objects.size(), begin, wrong);
    }
    if (contents.objects.empty()) fail(file_, contents.fault + "; copy or write it again");
    return contents;
  }

 private:
  /// Bytes of an index, by the first number; 0 if that is none of PETSc's.
  int width() const {
    for (const int bytes : {4, 8})
      if (file_.size() >= bytes && is_class(number_at(0, bytes))) return bytes;
    return 0;
  }
  static bool is_class(std::int64_t number) { return number == kMat || number == kVec || number == kIndexSet; }

  std::int64_t number_at(std::int64_t offset, int bytes) const {
    char stored[8];
    std::int64_t number = 0;
    file_.read(stored, offset, bytes);
    from_big_endian(stored, bytes, 1, &number);
    return number;
  }

  std::int64_t left() const { return file_.size() - at_; }

  /// The next `count` numbers of a header; nothing if the file ends before.
  std::vector<std::int64_t> take(std::int64_t count) {
    std::vector<std::int64_t> numbers;
    if (left() < count * index_bytes_) return numbers;
    for (std::int64_t i = 0; i < count; ++i, at_ += index_bytes_) numbers.push_back(number_at(at_, index_bytes_));
    return numbers;
  }

  /// Skips `count` numbers of these bytes; false if the file has fewer.
  bool skip(std::int64_t count, int bytes) {
    if (count < 0 || count > left() / bytes) return false;
    at_ += count * bytes;
    return true;
  }

  std::string next(Object& object) {
    object.index_bytes = index_bytes_;
    const auto kind = take(1);
    if (kind.empty()) return "is cut off: the file is truncated";
    if (kind[0] == kMat) return matrix(object);
    if (kind[0] != kVec && kind[0] != kIndexSet)
      return fmt::format("begins with {}, which is neither a Mat, a Vec nor an IS", kind[0]);
    const auto size = take(1);
    if (size.empty()) return "is cut off: the file is truncated";
    object.kind = kind[0] == kVec ? Kind::vector : Kind::index_set;
    object.rows = object.nnz = size[0];
    object.columns = object.values = at_;
    if (object.rows < 0) return fmt::format("has {} entries; the file is damaged", object.rows);
    if (object.kind == Kind::index_set) return skip(object.rows, index_bytes_) ? "" : short_of("indices", object.rows);
    return values(object.rows);
  }

  std::string short_of(const char* what, std::int64_t count) const {
    return fmt::format("promises {} {}, and only {} bytes are left; the file is truncated, or the number is wrong", count,
                       what, left());
  }

  std::string matrix(Object& object) {
    const auto sizes = take(3);
    if (sizes.empty()) return "is cut off: the file is truncated";
    object.rows = sizes[0], object.cols = sizes[1], object.nnz = sizes[2];
    if (object.rows < 0 || object.cols < 0)
      return fmt::format("is a matrix of {} × {}; the file is damaged", object.rows, object.cols);
    object.lengths = at_;
    if (object.nnz < 0) {
      object.kind = Kind::dense;
      object.values = at_;
      if (__builtin_mul_overflow(object.rows, object.cols, &object.nnz)) return short_of("rows", object.rows);
      return values(object.nnz);
    }
    if (!skip(object.rows, index_bytes_)) return short_of("rows", object.rows);
    if (index_bytes_ == 4 && object.nnz == kUncounted) {
      object.nnz = sum_of_lengths(object);
      if (object.nnz < 0) return "has a row of negative length; the file is damaged";
    }
    object.columns = at_;
    if (!skip(object.nnz, index_bytes_)) return short_of("nonzeros", object.nnz);
    object.values = at_;
    return values(object.nnz);
  }

  std::int64_t sum_of_lengths(const Object& object) const {
    HostVector<std::int64_t> lengths(static_cast<std::size_t>(std::min(kBlock, object.rows)));
    std::int64_t sum = 0;
    for (std::int64_t row = 0; row < object.rows; row += kBlock) {
      const std::int64_t count = std::min(kBlock, object.rows - row);
      file_.read(lengths.data(), object.lengths + 4 * row, 4 * count);
      from_big_endian(lengths.data(), 4, count, lengths.data());
      for (std::int64_t i = 0; i < count; ++i) {
        if (lengths[static_cast<std::size_t>(i)] < 0) return -1;
        sum += lengths[static_cast<std::size_t>(i)];
      }
    }
    return sum;
  }

  /// True if an object may begin at `offset`, or the file ends there.
  bool ends_at(std::int64_t offset) const {
    if (offset == file_.size()) return true;
    return offset < file_.size() - index_bytes_ && is_class(number_at(offset, index_bytes_));
  }

  /// Skips values. Nothing in the file says how wide they are; what follows them tells builds of PETSc with other scalars.
  std::string values(std::int64_t count) {
    const auto end_for = [&](int bytes) { return count <= left() / bytes ? at_ + count * bytes : -1; };
    const std::int64_t end = end_for(kValueBytes);
    if (count > 0 && (end < 0 || !ends_at(end))) {
      if (const std::int64_t wide = end_for(2 * kValueBytes); wide >= 0 && ends_at(wide))
        return fmt::format("has complex values, which are not read from PETSc files; {}", kComplexElsewhere);
      if (const std::int64_t narrow = end_for(kValueBytes / 2); narrow >= 0 && ends_at(narrow))
        return "is truncated, or has values in single precision, which are not supported; write it with a PETSc of double "
               "precision";
    }
    if (end < 0) return short_of("values", count);
    at_ = end;
    return "";
  }

  const InputFile& file_;
  int index_bytes_ = 4;
  std::int64_t at_ = 0;
};

std::string list_of(const Contents& contents) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, contents.objects.size()); ++i)
    text += fmt::format("{}:{} is {} {}", i == 0 ? "" : "; ", i, contents.objects[i].kind == Kind::index_set ? "an" : "a",
                        describe(contents.objects[i]));
  if (contents.objects.size() > kShown) text += fmt::format("; and {} more", contents.objects.size() - kShown);
  return text;
}

/// The object of the wanted kind; null if there is none. A sparse matrix goes before dense ones. Throws Error(input) for
/// several.
const Object* find_only(const InputFile& file, const Contents& contents, Wanted wanted, const char* what) {
  std::vector<const Object*> found;
  for (const Object& object : contents.objects)
    if (is_wanted(object, wanted)) found.push_back(&object);
  if (found.empty()) return nullptr;
  const auto is_sparse = [](const Object* object) { return object->kind == Kind::sparse; };
  const auto first = std::find_if(found.begin(), found.end(), is_sparse);
  if (std::count_if(found.begin(), found.end(), is_sparse) == 1) return *first;
  if (found.size() > 1)
    fail(file, fmt::format("it has several objects of the kind {}; name one, as {}:{}: {}", what, file.path().string(),
                           (first == found.end() ? found.front() : *first) - contents.objects.data(), list_of(contents)));
  return found.front();
}

}  // namespace

bool is_wanted(const Object& object, Wanted wanted) {
  switch (wanted) {
    case Wanted::matrix:
      return object.kind == Kind::sparse || object.kind == Kind::dense;
    case Wanted::vector:
      return object.kind == Kind::vector;
    case Wanted::numbers:
      return object.kind == Kind::vector || object.kind == Kind::dense;
    default:
      return object.kind == Kind::dense;
  }
}

bool is_petsc_file(const std::filesystem::path& path) {
  const std::string bytes = first_bytes(path, 8);
  if (bytes.size() < 8) return false;
  for (const int width : {4, 8}) {
    std::int64_t number = 0;
    from_big_endian(bytes.data(), width, 1, &number);
    if (number == kMat || number == kVec) return true;
  }
  return false;
}

Contents scan(const InputFile& file) { return Scan(file)(); }

std::string describe(const Object& object) {
  switch (object.kind) {
    case Kind::sparse:
      return fmt::format("sparse matrix, {} × {}, {}", human_count(object.rows), human_count(object.cols),
                         human_count(object.nnz, "nonzero"));
    case Kind::dense:
      return fmt::format("dense matrix, {} × {}", human_count(object.rows), human_count(object.cols));
    case Kind::vector:
      return fmt::format("vector of {} entries", human_count(object.rows));
    default:
      return fmt::format("index set of {} entries", human_count(object.rows));
  }
}

const Object& find(const InputFile& file, const Contents& contents, const std::string& name, Wanted wanted) {
  const char* const what = wanted == Wanted::matrix    ? "matrix"
                           : wanted == Wanted::vector  ? "vector"
                           : wanted == Wanted::numbers ? "vector or dense matrix"
                                                       : "dense matrix";
  if (name.empty()) {
    if (const Object* const only = find_only(file, contents, wanted, what)) return *only;
    if (!contents.fault.empty()) fail(file, contents.fault + "; copy or write it again");
    fail(file, fmt::format("there is no {} in it: {}", what, list_of(contents)));
  }
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size())
    fail(file, fmt::format("objects of a PETSc file have numbers, not names such as {}: {}", name, list_of(contents)));
  if (number >= contents.objects.size()) {
    if (!contents.fault.empty()) fail(file, contents.fault + "; copy or write it again");
    fail(file, fmt::format("there is no object {} in it: {}", number, list_of(contents)));
  }
  const Object& object = contents.objects[number];
  if (!is_wanted(object, wanted)) fail(file, fmt::format("object {} is no {}: {}", number, what, list_of(contents)));
  return object;
}

std::int64_t block_size(const std::filesystem::path& path) {
  constexpr std::size_t kMost = 1 << 12;
  std::istringstream file(first_bytes(path.string() + ".info", kMost));
  std::string word;
  for (int words = 0; words < 1000 && file >> word; ++words) {
    std::int64_t size = 0;
    if (word == "-matload_block_size" && file >> size && size >= 1 && size <= 1'000'000) return size;
  }
  return 1;
}

}  // namespace shardmat::petsc

namespace shardmat {

bool accepts_petsc(const std::filesystem::path& path) { return petsc::is_petsc_file(path) || path.extension() == ".petsc"; }

std::vector<FileObject> list_petsc(const std::filesystem::path& path) {
  const InputFile file(path);
  const petsc::Contents contents = petsc::scan(file);
  const std::int64_t block = petsc::block_size(path);
  std::vector<FileObject> list;
  for (std::size_t i = 0; i < contents.objects.size(); ++i) {
    const petsc::Object& object = contents.objects[i];
    const bool sparse = object.kind == petsc::Kind::sparse;
    list.push_back({std::to_string(i),
                    petsc::describe(object) + (sparse && block > 1 ? fmt::format(", blocks of {}", block) : ""),
                    is_wanted(object, petsc::Wanted::matrix)});
  }
  if (!contents.fault.empty()) list.push_back({"", "unreadable: " + contents.fault, false});
  return list;
}

}  // namespace shardmat
