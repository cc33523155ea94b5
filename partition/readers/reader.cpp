// The list of readers.
#include "partition/readers/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/shortened.h"
#include "kernels/base/text.h"
#include "partition/files/missing_file.h"
#include "partition/files/object_name.h"
#include "partition/files/rank_files.h"
#include "partition/readers/entry_reader.h"
#include "partition/readers/hdf5_kind.h"
#include "partition/readers/matlab5.h"
#include "partition/readers/npz_kind.h"
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace {

// The first that accepts a file reads it: formats with a magic number go before those known by their suffix.
const Reader kReaders[] = {
    {.name = "hypre-ij", .suffixes = ".00000 .00000.bin", .accepts = accepts_hypre, .open_entries = open_hypre_entries},
    {.name = "abaqus",
     .accepts = accepts_abaqus,
     .open_entries = open_abaqus,
     .remark = "unknowns sorted by node and degree of freedom"},
    {.name = "petsc", .suffixes = ".petsc", .accepts = accepts_petsc, .open_rows = open_petsc_rows, .list = list_petsc},
    {.name = "csr-arrays", .suffixes = ".csr", .accepts = accepts_csr_arrays, .open_rows = open_csr_arrays},
    {.name = "matrix-market",
     .suffixes = ".mtx .mtx.gz .mtx.bz2 .mtx.xz .mtx.zst",
     .accepts = accepts_matrix_market,
     .read = read_matrix_market,
     .open_entries = open_matrix_market_entries,
     .complex = true},
    {.name = "scipy-npz",
     .suffixes = ".npz",
     .accepts = accepts_npz,
     .read = read_npz,
     .open_entries = open_npz_entries,
     .complex = true},
    {.name = "rank-hdf5", .accepts = accepts_rank_hdf5, .open_entries = open_rank_hdf5_entries, .hdf5 = true},
    {.name = "sparse-hdf5",
     .suffixes = ".h5ad",
     .accepts = accepts_sparse_hdf5,
     .open_entries = open_sparse_hdf5_entries,
     .list = list_sparse_hdf5,
     .complex = true,
     .hdf5 = true},
    {.name = "matlab-hdf5",
     .suffixes = ".mat",
     .accepts = accepts_matlab_hdf5,
     .open_entries = open_matlab_hdf5_entries,
     .list = list_matlab_hdf5,
     .remark = "stored by columns and transposed while it was read",
     .hdf5 = true},
    {.name = "matlab5",
     .accepts = accepts_matlab5,
     .open_entries = open_matlab5_entries,
     .list = list_matlab5,
     .remark = "stored by columns and transposed while it was read",
     .complex = true},
    {.name = "harwell-boeing",
     .suffixes = ".rb .rua .rsa",
     .accepts = accepts_harwell_boeing,
     .open_entries = open_harwell_boeing,
     .list = list_harwell_boeing,
     .remark = "stored by columns and transposed while it was read"},
    {.name = "freefem", .accepts = accepts_freefem, .open_entries = open_freefem},
    {.name = "calculix",
     .suffixes = ".sti .mas .con .sph .str",
     .accepts = accepts_calculix,
     .open_entries = open_calculix,
     .remark = "unknowns sorted by node and degree of freedom"},
    {.name = "triplets", .accepts = accepts_triplets, .open_entries = open_triplets},
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.size(), text.find(' ', begin));
    words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

/// True for one wrong letter, or letters in another order. Suffixes are so short that those of other formats, such as .txt
/// and .mat, differ by little more.
bool is_misspelt(const std::string& word, const std::string& right) {
  if (word.size() != right.size() || word == ".csv") return false;  // a table, not arrays of a CSR matrix
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < word.size(); ++i) wrong += word[i] != right[i] ? 1 : 0;
  return wrong == 1 || std::is_permutation(word.begin(), word.end(), right.begin());
}

[[noreturn]] void fail_suffix(const std::filesystem::path& path) {
  std::vector<std::string> known{".h5"};
  for (const Reader& reader : kReaders)
    for (std::string& suffix : words_of(reader.suffixes)) known.push_back(std::move(suffix));
  const std::string suffix = path.extension().string();
  const auto like =
      std::find_if(known.begin(), known.end(), [&](const std::string& one) { return is_misspelt(suffix, one); });
  if (suffix == ".npy")
    throw Error(
        ErrorKind::input,
        fmt::format("{}: a .npy file holds a dense array, such as x of shardmat multiply; write a sparse matrix with "
                    "scipy.sparse.save_npz(name, scipy.sparse.csr_array(a))",
                    path.string()));
  matlab5::refuse_octave_format(path);
  if (const auto header = look_for_triplets(path))
    throw Error(
        ErrorKind::input,
        fmt::format("{}: {}, which do not say how they count; name the format and the base, 0 or 1, and the triangle, lower "
                    "or upper, if the file has one triangle of a symmetric matrix",
                    path.string(),
                    header->line == 0 ? "it looks like triplets without a header"
                                      : fmt::format("remove line {}, the header \"{}\"; below it are triplets", header->line,
                                                    shortened(header->text))),
        "triplets");
  throw Error(ErrorKind::input,
              fmt::format("{}: {} is no matrix file that can be read; its name must end in {}{}", path.string(),
                          suffix.empty() ? "a file without suffix" : suffix, join_choices(known),
                          like == known.end() ? "" : fmt::format(" (did you mean {}?)", *like)),
              "input_format");
}

}  // namespace

std::span<const Reader> readers() { return kReaders; }

namespace {

const Reader& named_reader(const std::string& name) {
  std::vector<std::string> names{"shard"};
  for (const Reader& reader : kReaders) {
    if (reader.name == name) return reader;
    names.emplace_back(reader.name);
  }
  const std::string near = nearest(name, names);
  throw Error(ErrorKind::usage,
              fmt::format("there is no input format '{}'{}; choose {}", name,
                          near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near), join_choices(names)),
              "input_format");
}

}  // namespace

std::string format_of(const std::string& argument, const InputChoices& choices) {
  constexpr const char *kMapped = "rank-hdf5", *kHypre = "hypre-ij";
  if (choices.map.empty() && !choices.sum_duplicates) return choices.format;
  const bool sums_hypre =
      choices.map.empty() && (choices.format == kHypre || (choices.format.empty() && accepts_hypre(argument)));
  if (sums_hypre) return kHypre;
  if (!choices.format.empty() && choices.format != kMapped)
    throw Error(ErrorKind::usage,
                choices.map.empty() ? fmt::format("sums of duplicates are for the formats {} and {}, not for {}", kMapped,
                                                  kHypre, choices.format)
                                    : fmt::format("a map is for the format {}, not for {}", kMapped, choices.format),
                "input_format");
  return kMapped;
}

bool require_input_format(const std::string& format) {
  if (format == "shard") return false;
  named_reader(format);
  return true;
}

namespace {

[[noreturn]] void fail_directory(const std::filesystem::path& path) {
  constexpr int kMostLookedAt = 200;
  constexpr std::size_t kShown = 5;
  std::vector<std::string> found;
  std::error_code error;
  int looked_at = 0;
  for (std::filesystem::directory_iterator i(path, error), end; !error && i != end && looked_at < kMostLookedAt;
       i.increment(error), ++looked_at)
    if (i->is_regular_file(error) &&
        (has_hdf5_suffix(i->path()) || std::any_of(std::begin(kReaders), std::end(kReaders),
                                                   [&](const Reader& reader) { return reader.accepts(i->path()); })))
      found.push_back(i->path().string());
  std::sort(found.begin(), found.end());
  const bool more = found.size() > kShown;
  if (more) found.resize(kShown);
  throw Error(ErrorKind::input,
              fmt::format("{}: it is a directory; give a matrix file in it{}{}{} (directories of small matrices are for "
                          "shardmat batch)",
                          path.string(), found.empty() ? "" : ", as ", fmt::join(found, ", "), more ? ", …" : ""));
}

/// A file of ranks is there if the first one is.
void require_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found && !names_rank_files(path.string())) fail_missing(path);
  if (status.type() == std::filesystem::file_type::directory) fail_directory(path);
}

/// The file, its reader, and options with the object that the argument names.
struct Request {
  std::filesystem::path file;
  const Reader& reader;
  ReadOptions options;
};

Request request_of(const std::string& argument, const ReadOptions& options) {
  ObjectName name = split_object_name(argument);
  Request request{name.file, reader_of(name.file, options.choices), options};
  if (options.choices.part != ComplexPart::none && !request.reader.complex)
    throw Error(ErrorKind::input,
                fmt::format("{}: complex values are not read from {} files; write the matrix with scipy.sparse.save_npz or "
                            "scipy.io.mmwrite",
                            name.file, request.reader.name));
  request.options.object = std::move(name.object);
  if (!request.options.object.empty() && request.reader.list == nullptr)
    throw Error(ErrorKind::input, fmt::format("{}: a {} file holds one matrix; leave out :{}", name.file,
                                              request.reader.name, request.options.object));
  return request;
}

HostCsr read_whole(const RowSource& source) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 16;
  const std::int64_t nnz = read_row_pointers(source).back();
  ReadLimits{}.require_memory(nnz > kMost ? std::numeric_limits<std::int64_t>::max() : 16 * nnz, source.name());
  return source.read_rows(0, source.rows());
}

}  // namespace

const Reader& reader_of(const std::filesystem::path& path, const InputChoices& choices) {
  if (choices.format != "triplets" && (choices.base || !choices.triangle.empty()))
    throw Error(ErrorKind::usage, "the first index and the triangle count only for triplets; name that format, too",
                "input_format");
  if (const std::string format = format_of(path.string(), choices); !format.empty()) {
    const Reader& reader = named_reader(format);
    require_file(path);
    return reader;
  }
  require_file(path);
  if (path.extension() == ".npz" && kind_of_npz(path) == NpzKind::graphs)
    throw Error(ErrorKind::input,
                fmt::format("{}: it is a batch of graphs, not one matrix; multiply it with: shardmat batch {}",
                            path.string(), path.string()));
  for (const Reader& reader : kReaders)
    if (reader.accepts(path)) return reader;
  fail_suffix(path);
}

MatrixWithUnknowns read_matrix_with_unknowns(const std::filesystem::path& path, const ReadOptions& options) {
  const Request request = request_of(path.string(), options);
  const Reader& reader = request.reader;
  if (reader.read != nullptr) return {reader.read(request.file, request.options), nullptr};
  if (reader.open_rows != nullptr) return {read_whole(*reader.open_rows(request.file, request.options)), nullptr};
  const auto entries = reader.open_entries(request.file, request.options, {});
  return {read_by_entries(*entries, request.options, {}), entries->unknowns()};
}

HostCsr read_matrix(const std::filesystem::path& path, const ReadOptions& options) {
  return read_matrix_with_unknowns(path, options).matrix;
}

std::unique_ptr<EntryReader> open_entries(const std::filesystem::path& path, const ReadOptions& options,
                                          const ReadLimits& limits) {
  const Request request = request_of(path.string(), options);
  if (request.reader.open_entries == nullptr)
    throw Error(ErrorKind::internal, fmt::format("{}: it is read as rows, not as entries", path.string()));
  return request.reader.open_entries(request.file, request.options, limits);
}

bool gives_any_rows(const std::string& argument, const InputChoices& choices) {
  try {
    return reader_of(split_object_name(argument).file, choices).open_rows != nullptr;
  } catch (const Error&) {
    return false;  // reading says what is wrong
  }
}

std::unique_ptr<RowSource> open_matrix_rows(const std::string& argument, const ReadOptions& options) {
  const Request request = request_of(argument, options);
  if (request.reader.open_rows == nullptr)
    throw Error(ErrorKind::internal, fmt::format("{}: it is read as entries, not as rows", argument));
  return request.reader.open_rows(request.file, request.options);
}

std::string_view remark_on(const std::string& argument, const InputChoices& choices) {
  return reader_of(split_object_name(argument).file, choices).remark;
}

std::vector<FileObject> list_objects(const std::filesystem::path& path, const InputChoices& choices) {
  const Reader& reader = reader_of(path, choices);
  if (reader.list != nullptr) return reader.list(path);
  return {{"", fmt::format("matrix, {}", reader.name)}};
}

}  // namespace shardmat
