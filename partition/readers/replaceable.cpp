#include "partition/readers/replaceable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <system_error>
#include <vector>

#include "kernels/base/error.h"
#include "partition/files/first_bytes.h"
#include "partition/files/input_file.h"
#include "partition/files/rank_files.h"
#include "partition/readers/hdf5_kind.h"
#include "partition/readers/hypre.h"
#include "partition/readers/matlab5.h"
#include "partition/readers/matlab_hdf5.h"
#include "partition/readers/npz_kind.h"
#include "partition/readers/petsc.h"

namespace shardmat {
namespace {

constexpr std::size_t kFirst = 96;  ///< bytes that tell what a file is

/// The first line of Matrix Market text in small letters.
std::string banner(const std::filesystem::path& path) {
  std::string text = first_bytes(path, kFirst);
  text.resize(std::min(text.size(), text.find('\n')));
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// True if `dataset` is the only one of the file; `name` has no '/' at its begin.
bool holds_only(const Hdf5File& file, std::string_view name) {
  std::string group;
  while (true) {
    const std::string_view first = name.substr(0, name.find('/'));
    const std::vector<std::string> names = file.children(group.empty() ? "/" : group);
    if (names.size() != 1 || names.front() != first) return false;
    if (first.size() == name.size()) return true;
    group.append("/").append(first);
    name.remove_prefix(first.size() + 1);
  }
}

/// True if the root has nothing but the datasets of a matrix and our tables.
bool holds_a_matrix_only(const Hdf5File& file, Hdf5Kind kind) {
  if (kind != Hdf5Kind::shard_file && kind != Hdf5Kind::binsparse) return false;
  const std::vector<std::string> names = file.children("/");
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return name == "pointers_to_1" || name == "indices_1" || name == "values" || name == "shardmat";
  });
}

/// True for a .mat file with one matrix, sparse or not, and nothing else.
bool holds_one_of_matlab(const std::filesystem::path& path, const Hdf5File& file, Hdf5Kind kind, bool sparse) {
  if (path.extension() != ".mat" || kind != Hdf5Kind::other || file.children("/").size() != 1) return false;
  const auto objects = matlab_hdf5::objects_of(path);
  return objects.size() == 1 && objects.front().sparse == sparse;
}

/// The same for a file of versions 5 to 7.
bool holds_one_of_matlab5(const std::filesystem::path& path, bool sparse) {
  if (path.extension() != ".mat" || !matlab5::is_matlab5_file(path)) return false;
  try {
    const std::vector<matlab5::Variable> variables = matlab5::variables_of(InputFile(path));
    return variables.size() == 1 && (sparse ? variables.front().sparse() : variables.front().dense());
  } catch (const Error&) {
    return false;
  }
}

/// What a file at `path`, which is an HDF5 file, would lose; empty if nothing.
std::string lost_in_hdf5(const std::filesystem::path& path, Output output, const std::string& dataset) {
  const std::string first = dataset.substr(0, dataset.find('/', 1));  // known with all that is below it
  const Hdf5File file = Hdf5File::open(path, first.empty() ? std::vector<std::string>{} : std::vector<std::string>{first});
  const Hdf5Kind kind = kind_of(file);
  const bool same = output == Output::matrix ? holds_a_matrix_only(file, kind) || holds_one_of_matlab(path, file, kind, true)
                    : output == Output::batch  ? kind == Hdf5Kind::batch
                    : output == Output::vector ? (kind == Hdf5Kind::other && holds_only(file, dataset.substr(1))) ||
                                                     holds_one_of_matlab(path, file, kind, false)
                                               : false;
  return same ? "" : describe(file);
}

/// What a PETSc file would lose; empty if it holds one object of the kind that takes its place.
std::string lost_in_petsc(const std::filesystem::path& path, Output output) {
  try {
    const petsc::Contents contents = petsc::scan(InputFile(path));
    if (!contents.fault.empty()) return "a PETSc file that cannot be read";
    if (contents.objects.size() > 1) return fmt::format("a PETSc file with {} objects", contents.objects.size());
    const petsc::Kind kind = contents.objects.front().kind;
    const bool same =
        output == Output::matrix ? kind == petsc::Kind::sparse : kind == petsc::Kind::vector || kind == petsc::Kind::dense;
    return same && output != Output::batch ? "" : "a PETSc file with a " + petsc::describe(contents.objects.front());
  } catch (const Error&) {
    return "a PETSc file that cannot be read";
  }
}

/// The same of a file with hypre's name.
std::string lost_of_hypre(const std::filesystem::path& path, Output output) {
  const bool vector = output == Output::vector;
  return hypre::is_part(path, vector) ? ""
                                      : fmt::format("something else than an IJ {} of hypre", vector ? "vector" : "matrix");
}

/// What the file would lose; empty if nothing.
std::string lost(const std::filesystem::path& path, bool is_name_of_hypre, Output output, const std::string& dataset) {
  const FileContent content = content_of(path);
  if (content == FileContent::absent || content == FileContent::empty) return "";
  if (output != Output::report && has_hdf5_suffix(path) && content != FileContent::hdf5)
    return "something that is no HDF5 file";
  const bool of_hypre = content == FileContent::numbers || content == FileContent::other;
  if (of_hypre && output != Output::report && is_name_of_hypre) return lost_of_hypre(path, output);
  switch (content) {
    case FileContent::hdf5:
      try {
        return lost_in_hdf5(path, output, dataset);
      } catch (const Error&) {
        return "an HDF5 file that cannot be read";
      }
    case FileContent::matrix_market: {
      const bool array = banner(path).find(" array") != std::string::npos;
      if (path.extension() != ".mtx" || output != (array ? Output::vector : Output::matrix))
        return array ? "a Matrix Market array" : "a Matrix Market matrix";
      return "";
    }
    case FileContent::npy:
      return output == Output::vector && path.extension() == ".npy" ? "" : "a NumPy array";
    case FileContent::zip: {
      const NpzKind kind = kind_of_npz(path);
      if (output == Output::matrix && path.extension() == ".npz" && kind == NpzKind::matrix) return "";
      return kind == NpzKind::matrix ? "a SciPy matrix" : kind == NpzKind::graphs ? "a batch of graphs" : "a zip archive";
    }
    case FileContent::petsc:
      return output != Output::report && path.extension() == ".petsc" ? lost_in_petsc(path, output) : "a PETSc file";
    case FileContent::numbers:
      if (output == Output::report || (output == Output::vector && path.extension() == ".txt") ||
          (output == Output::unknowns && path.extension() == ".dof"))
        return "";
      return fmt::format("something else than a {} file", path.extension().string());
    default:
      if (matlab5::is_matlab5_file(path)) {
        const bool same = (output == Output::matrix && holds_one_of_matlab5(path, true)) ||
                          (output == Output::vector && holds_one_of_matlab5(path, false));
        return same ? "" : "a .mat file with other variables";
      }
      return output == Output::report ? "" : fmt::format("something else than a {} file", path.extension().string());
  }
}

}  // namespace

FileContent content_of(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) return FileContent::absent;
  if (status.type() != std::filesystem::file_type::regular) return FileContent::other;
  if (std::filesystem::file_size(path, error) == 0) return FileContent::empty;
  using namespace std::string_view_literals;
  const std::string bytes = first_bytes(path, kFirst);
  if (matlab_hdf5::has_signature(path)) return FileContent::hdf5;
  if (bytes.starts_with("\x93NUMPY"sv)) return FileContent::npy;
  if (bytes.starts_with("PK\x03\x04"sv) || bytes.starts_with("PK\x05\x06"sv)) return FileContent::zip;
  if (banner(path).starts_with("%%matrixmarket")) return FileContent::matrix_market;
  if (petsc::is_petsc_file(path)) return FileContent::petsc;
  if (bytes.find_first_not_of("0123456789+-.,eE \t\r\nnaif") == std::string::npos) return FileContent::numbers;
  return FileContent::other;
}

void require_replaceable(const std::string& path, Output output, const std::string& default_dataset, std::int64_t files) {
  const DatasetName name = output == Output::vector ? split_dataset_name(path) : DatasetName{path, ""};
  const bool is_name_of_hypre = is_first_rank_file(name.file.string());
  for (const std::filesystem::path& file : rank_file_names(name.file.string(), is_name_of_hypre ? files : 1)) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) continue;
    const std::string dataset = name.dataset.empty() ? "/" + default_dataset : name.dataset;
    const std::string there = lost(file, is_name_of_hypre, output, dataset);
    if (there.empty()) continue;
    throw Error(ErrorKind::usage,
                fmt::format("cannot write {}: there is a file of this name, and it is {}; name another file, or {}",
                            file.string(), there, output == Output::report ? "remove it first" : "have this one replaced"),
                output == Output::report ? "" : "force");
  }
}

}  // namespace shardmat
