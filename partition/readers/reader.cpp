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
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace {

const Reader kReaders[] = {
    {"matrix-market", ".mtx .mtx.gz", accepts_matrix_market, read_matrix_market},
    {"scipy-npz", ".npz", accepts_npz, read_npz},
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

[[noreturn]] void fail_suffix(const std::filesystem::path& path) {
  std::vector<std::string> known;
  for (const Reader& reader : kReaders)
    for (std::string& suffix : words_of(reader.suffixes)) known.push_back(std::move(suffix));
  const std::string suffix = path.extension().string();
  const std::string near = suffix.empty() ? "" : nearest(suffix, known);
  throw Error(ErrorKind::input,
              fmt::format("{}: {} is no matrix file that can be read; its name must end in {}{}", path.string(),
                          suffix.empty() ? "a file without suffix" : suffix, join_choices(known),
                          near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

}  // namespace

std::span<const Reader> readers() { return kReaders; }

HostCsr read_matrix(const std::filesystem::path& path, const ReadOptions& options) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) fail_missing(path);
  if (status.type() == std::filesystem::file_type::directory)
    throw Error(ErrorKind::input, fmt::format("{}: it is a directory; give a matrix file in it", path.string()));
  for (const Reader& reader : kReaders)
    if (reader.accepts(path)) return reader.read(path, options);
  fail_suffix(path);
}

}  // namespace shardmat
