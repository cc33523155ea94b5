#include "partition/files/atomic_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>

#include "kernels/base/error.h"
#include "partition/files/rank_files.h"

namespace shardmat {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& first, std::int64_t files, const std::string& why) {
  throw Error(ErrorKind::usage,
              fmt::format("cannot write {} as {} file{}: {}", first.string(), files, files == 1 ? "" : "s", why), "files");
}

}  // namespace

void check_file_count(const std::filesystem::path& first, std::int64_t files) {
  if (files < 1) refuse(first, files, "an output has at least one file");
  if (!is_first_rank_file(first.string())) {
    if (files > 1)
      refuse(first, files,
             "only hypre's format has a file for each rank; end the name in .00000 or .00000.bin, or write one file");
    return;
  }
  const auto later = later_rank_files(first.string(), files);
  if (later.empty()) return;
  refuse(first, files,
         fmt::format("{}{} there and would be read as part of it; remove {} first, or choose another name",
                     later.front().string(),
                     later.size() == 1 ? " is" : fmt::format(" and further files up to {} are", later.back().string()),
                     later.size() == 1 ? "it" : "them"));
}

void require_rows_for_files(const std::filesystem::path& first, std::int64_t files, std::int64_t rows) {
  if (files > 1 && files > rows)
    refuse(first, files,
           fmt::format("there are {} rows, and each file has at least one; write {} or fewer files", rows,
                       std::max<std::int64_t>(rows, 1)));
}

std::int64_t begin_of_part(std::int64_t count, std::int64_t part, std::int64_t parts) {
  return count / parts * part + std::min(part, count % parts);
}

AtomicFiles::AtomicFiles(const std::filesystem::path& first, std::int64_t files, std::int64_t rows) {
  check_file_count(first, files);
  require_rows_for_files(first, files, rows);
  for (const std::filesystem::path& name : rank_file_names(first.string(), files))
    files_.push_back(std::make_unique<AtomicFile>(name));
}

void AtomicFiles::commit() {
  for (const auto& file : files_) file->flush();
  for (const auto& file : files_) file->rename();
  std::error_code ignored;
  for (const auto& file : files_)  // all are in one directory, but links may lead to others
    if (file == files_.front() || std::filesystem::is_symlink(file->path(), ignored)) file->flush_directory();
}

}  // namespace shardmat
