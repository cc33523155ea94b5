#include "partition/readers/sparse_hdf5.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "partition/hdf5/shard_file_format.h"
#include "partition/readers/hdf5_kind.h"
#include "partition/readers/matlab_hdf5.h"
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace sparse_hdf5 {
namespace {

constexpr std::size_t kMostObjects = 1000;
constexpr int kDeepest = 8;

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", path.string(), what));
}

std::string below(const std::string& group, const std::string& name) {
  return group == "/" ? "/" + name : group + "/" + name;
}

Object binsparse_object(const Hdf5File& file, const std::string& group) {
  Object object;
  object.name = group;
  object.form = binsparse::read_descriptor(file, group);
  object.pointers = below(group, "pointers_to_1");
  object.major = below(group, "indices_0");
  object.minor = below(group, "indices_1");
  object.values = below(group, "values");
  return object;
}

bool has_arrays(const Hdf5File& file, const std::string& group) {
  const auto has = [&](const char* name) { return file.has(below(group, name)); };
  return has("data") && has("indices") && has("indptr");
}

/// The sizes of a matrix: a dataset or an attribute. Empty if there is neither.
std::vector<std::int64_t> shape_of(const Hdf5File& file, const std::string& group) {
  for (const char* name : {"shape", "h5sparse_shape"})
    if (file.has_attribute(group, name)) return file.integers_attribute(group, name);
  if (!file.has(below(group, "shape"))) return {};
  const Hdf5Dataset stored = file.dataset(below(group, "shape"));
  std::vector<std::int64_t> shape(2);
  if (stored.shape() != std::vector<std::int64_t>{2}) return {};
  stored.read(0, 2, shape.data());
  return shape;
}

/// "csr" or "csc" of the attributes; empty if none says it.
std::string format_in(const Hdf5File& file, const std::string& group) {
  for (const char* name : {"encoding-type", "h5sparse_format", "format"})
    if (file.has_attribute(group, name)) {
      const std::string text = file.string_attribute(group, name).substr(0, 3);
      if (text == "csr" || text == "csc") return text;
    }
  return file.has(below(group, "barcodes")) ? "csc" : "";
}

/// data, indices and indptr of SciPy, as AnnData and 10x Genomics write them.
Object scipy_object(const Hdf5File& file, const std::string& group) {
  Object object;
  object.name = group, object.binsparse = false;
  object.pointers = below(group, "indptr"), object.minor = below(group, "indices"), object.values = below(group, "data");
  const std::vector<std::int64_t> shape = shape_of(file, group);
  if (shape.size() != 2 || shape[0] < 0 || shape[1] < 0)
    fail(file.path(), fmt::format("{} has no shape of two numbers, neither as a dataset nor as an attribute", group));
  object.form.rows = shape[0], object.form.cols = shape[1];
  object.form.stored = file.dataset(object.minor).size();
  const std::int64_t majors = file.dataset(object.pointers).size() - 1;
  const std::string format = format_in(file, group);
  if (format.empty() && (shape[0] == shape[1] || (majors != shape[0] && majors != shape[1])))
    fail(file.path(), fmt::format("{} does not say whether it is stored by rows or by columns; give it the attribute "
                                  "encoding-type, \"csr_matrix\" or \"csc_matrix\"",
                                  group));
  const bool by_rows = format.empty() ? majors == shape[0] : format == "csr";
  object.form.order = by_rows ? binsparse::Order::rows : binsparse::Order::columns;
  object.form.format = by_rows ? "CSR" : "CSC";
  return object;
}

template <class Make>
Object made_or_fault(const std::string& group, Make&& make) {
  try {
    return make();
  } catch (const Error& error) {
    Object object;
    object.name = group, object.fault = error.what();
    return object;
  }
}

/// Adds what is in `group`, and in the groups below it.
void collect(const Hdf5File& file, const std::string& group, int depth, std::vector<Object>& objects) {
  if (objects.size() >= kMostObjects || depth > kDeepest) return;
  if (file.has_attribute(group, binsparse::kAttribute))
    return objects.push_back(made_or_fault(group, [&] { return binsparse_object(file, group); }));
  if (has_arrays(file, group)) return objects.push_back(made_or_fault(group, [&] { return scipy_object(file, group); }));
  std::vector<std::string> names;
  try {
    names = file.children(group);
  } catch (const Error&) {
    return;  // no group
  }
  for (const std::string& name : names) collect(file, below(group, name), depth + 1, objects);
}

std::string list_of(const std::vector<Object>& objects) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, objects.size()); ++i)
    text += fmt::format("{}:{} is {}", i == 0 ? "" : "; ", objects[i].name,
                        objects[i].fault.empty() ? "a " + describe(objects[i]) : describe(objects[i]));
  if (objects.size() > kShown) text += fmt::format("; and {} more", objects.size() - kShown);
  return text;
}

/// True if `a` lies in the group `b`.
bool is_in(const std::string& a, const std::string& b) { return b == "/" || a.starts_with(b + "/"); }

}  // namespace

std::vector<Object> objects_of(const std::filesystem::path& path) {
  const Hdf5File file = Hdf5File::open(path);
  if (file.has(shard_format::kGroup)) return {};  // its rows may be permuted
  std::vector<std::string> names = file.children("/");
  if (names.size() > kMostObjects) names.resize(kMostObjects);
  for (std::string& name : names) name.insert(0, 1, '/');
  std::vector<Object> objects;
  collect(Hdf5File::open(path, names), "/", 0, objects);
  return objects;
}

std::string describe(const Object& object) {
  if (!object.fault.empty()) return "unreadable: " + object.fault;
  const binsparse::Descriptor& form = object.form;
  return fmt::format("sparse matrix, {} × {}, {} stored, {}{}{}", human_count(form.rows), human_count(form.cols),
                     human_count(form.stored, "nonzero"), form.format, form.word.empty() ? "" : ", " + form.word,
                     form.complex ? ", complex" : "");
}

Object find(const std::filesystem::path& path, const std::string& name) {
  const std::vector<Object> objects = objects_of(path);
  if (objects.empty()) {
    const Hdf5File file = Hdf5File::open(path);
    fail(path, file.has(shard_format::kGroup) ? "it is a shard file, which holds one matrix; give its name alone, without a "
                                                "format or an object"
                                              : why_no_matrix(file));
  }
  const auto line = [&](const Object& object) {
    return fmt::format("name {}, as {}:{}: {}", objects.size() == 1 ? "it" : "one", path.string(), object.name,
                       list_of(objects));
  };
  if (name.empty() && objects.size() > 1)
    fail(path, fmt::format("it has {} sparse matrices; {}", objects.size(), line(objects.front())));
  std::string wanted = name.empty() ? objects.front().name : matlab_hdf5::absolute(name);
  while (wanted.size() > 1 && wanted.ends_with('/')) wanted.pop_back();
  for (const Object& object : objects) {
    if (object.name != wanted) continue;
    if (!object.fault.empty()) throw Error(ErrorKind::input, object.fault);
    return object;
  }
  const auto near = std::find_if(objects.begin(), objects.end(), [&](const Object& object) {
    return is_in(object.name, wanted) || is_in(wanted, object.name);
  });
  const Object& shown = near == objects.end() ? objects.front() : *near;
  const bool part = near != objects.end() && is_in(wanted, shown.name);
  fail(path, part ? fmt::format("{} is a part of the matrix {}; {}", wanted, shown.name, line(shown))
                  : fmt::format("{} is no sparse matrix; {}", wanted, line(shown)));
}

}  // namespace sparse_hdf5

bool accepts_sparse_hdf5(const std::filesystem::path& path) {
  if (path.extension() == ".mat" || !matlab_hdf5::has_signature(path)) return false;
  try {
    return !sparse_hdf5::objects_of(path).empty();
  } catch (const Error&) {
    return false;
  }
}

std::vector<FileObject> list_sparse_hdf5(const std::filesystem::path& path) {
  std::vector<FileObject> list;
  for (const sparse_hdf5::Object& object : sparse_hdf5::objects_of(path))
    list.push_back({object.name == "/" ? "" : object.name, sparse_hdf5::describe(object), object.fault.empty()});
  return list;
}

}  // namespace shardmat
