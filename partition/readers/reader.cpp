// The list of readers.
#include "partition/readers/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/text.h"
#include "partition/missing_file.h"
#include "partition/readers/npz_kind.h"
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace {

const Reader kReaders[] = {
    {"matrix-market", ".mtx .mtx.gz", accepts_matrix_market, read_matrix_market, open_matrix_market_entries},
    {"scipy-npz", ".npz", accepts_npz, read_npz, open_npz_entries},
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
  if (word.size() != right.size()) return false;
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
  throw Error(ErrorKind::input,
              fmt::format("{}: {} is no matrix file that can be read; its name must end in {}{}", path.string(),
                          suffix.empty() ? "a file without suffix" : suffix, join_choices(known),
                          like == known.end() ? "" : fmt::format(" (did you mean {}?)", *like)));
}

}  // namespace

std::span<const Reader> readers() { return kReaders; }

const Reader& reader_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) fail_missing(path);
  if (status.type() == std::filesystem::file_type::directory)
    throw Error(
        ErrorKind::input,
        fmt::format("{}: it is a directory; give a matrix file in it (directories of small matrices are for shardmat "
                    "batch)",
                    path.string()));
  if (path.extension() == ".npz" && kind_of_npz(path) == NpzKind::graphs)
    throw Error(ErrorKind::input,
                fmt::format("{}: it is a batch of graphs, not one matrix; multiply it with: shardmat batch {}",
                            path.string(), path.string()));
  for (const Reader& reader : kReaders)
    if (reader.accepts(path)) return reader;
  fail_suffix(path);
}

HostCsr read_matrix(const std::filesystem::path& path, const ReadOptions& options) {
  return reader_of(path).read(path, options);
}

std::unique_ptr<EntryReader> open_entries(const std::filesystem::path& path, const ReadOptions& options,
                                          const ReadLimits& limits) {
  return reader_of(path).open_entries(path, options, limits);
}

}  // namespace shardmat
