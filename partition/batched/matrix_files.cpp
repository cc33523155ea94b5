// Folders and lists of matrix files.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <system_error>
#include <vector>

#include "kernels/base/at.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/shortened.h"
#include "partition/batched/batch_list.h"
#include "partition/readers/reader_list.h"

namespace shardmat {
namespace {

using Path = std::filesystem::path;

constexpr std::size_t kLongestName = 4096;  ///< of Linux

/// The whole number that begins at `p`, without leading zeros; leaves p behind it.
std::string_view take_number(const char*& p, const char* end) {
  while (p + 1 < end && *p == '0' && std::isdigit(static_cast<unsigned char>(p[1]))) ++p;
  const char* const begin = p;
  while (p < end && std::isdigit(static_cast<unsigned char>(*p))) ++p;
  return {begin, static_cast<std::size_t>(p - begin)};
}

/// By name, numbers in it by their value.
bool natural_less(const Path& left, const Path& right) {
  const std::string a = left.filename().string(), b = right.filename().string();
  const char *p = a.data(), *q = b.data(), *const p_end = p + a.size(), *const q_end = q + b.size();
  while (p < p_end && q < q_end) {
    if (std::isdigit(static_cast<unsigned char>(*p)) && std::isdigit(static_cast<unsigned char>(*q))) {
      const std::string_view m = take_number(p, p_end), n = take_number(q, q_end);
      if (m.size() != n.size()) return m.size() < n.size();
      if (m != n) return m < n;
    } else {
      if (*p != *q) return *p < *q;
      ++p, ++q;
    }
  }
  if (p < p_end || q < q_end) return q < q_end;
  return a < b;  // a01 and a1
}

std::vector<Path> files_in(const Path& folder) {
  std::vector<Path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    if (accepts_matrix_market(i->path())) files.push_back(i->path());
  if (error) throw Error(ErrorKind::input, fmt::format("{}: it cannot be listed: {}", folder.string(), error.message()));
  std::sort(files.begin(), files.end(), natural_less);
  return files;
}

HostCsr read_one(const Path& path) {
  HostCsr matrix = read_matrix(path);
  if (matrix.cols > std::numeric_limits<std::int32_t>::max())
    throw Error(ErrorKind::input,
                fmt::format("{}: it has {} columns; a matrix of a batch has less than 2^31", path.string(), matrix.cols));
  return matrix;
}

/// `source` names the folder or list for the error of a batch that does not fit.
void append(HostBatch& batch, const HostCsr& matrix, const std::string& source) {
  const std::int64_t all_rows = std::ssize(batch.row_ptr) + matrix.rows, all_nnz = std::ssize(batch.values) + matrix.nnz();
  // Vectors that are full are copied into larger ones.
  if (at(all_rows) > batch.row_ptr.capacity()) require_host_memory(16 * all_rows, source.c_str());
  if (at(all_nnz) > batch.values.capacity()) require_host_memory(24 * all_nnz, source.c_str());
  HostVector<std::int32_t> col_idx(matrix.col_idx.size());
  std::transform(matrix.col_idx.begin(), matrix.col_idx.end(), col_idx.begin(),
                 [](std::int64_t col) { return static_cast<std::int32_t>(col); });
  const std::int64_t rows[] = {0, matrix.rows}, cols[] = {0, matrix.cols};
  batch.append({rows, cols, matrix.row_ptr, col_idx, matrix.values});
}

void append_listed(HostBatch& batch, const Path& list) {
  const auto text = TextSource::open(list, {});
  LineCursor lines(*text);
  for (std::string_view line = lines.next(); !line.empty(); line = lines.next()) {
    line = line.substr(0, line.find('#'));
    const std::size_t begin = std::min(line.size(), line.find_first_not_of(" \t\r\n"));
    const std::string name(line.substr(begin, line.find_last_not_of(" \t\r\n") + 1 - begin));
    if (name.empty()) continue;
    if (name.size() > kLongestName) lines.fail(fmt::format("{} is no name of a file: it is too long", shortened(name)));
    HostCsr matrix;
    try {
      matrix = read_one(list.parent_path() / name);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::input) throw;
      lines.fail(e.what());
    }
    append(batch, matrix, list.string());
  }
}

}  // namespace

bool accepts_matrix_files(const std::string& argument) {
  std::error_code error;
  if (std::filesystem::is_directory(argument, error)) return !files_in(argument).empty();
  return Path(argument).extension() == ".txt" && std::filesystem::exists(argument, error);
}

std::unique_ptr<BatchSource> open_matrix_files(const std::string& argument, const EdgeValues& edges) {
  refuse_choice(edges, argument);
  auto batch = std::make_shared<HostBatch>();
  if (Path(argument).extension() == ".txt" && !std::filesystem::is_directory(argument)) append_listed(*batch, argument);
  else
    for (const Path& file : files_in(argument)) append(*batch, read_one(file), argument);
  return make_memory_batch(std::move(batch), argument);
}

}  // namespace shardmat
