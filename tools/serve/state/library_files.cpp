#include "tools/serve/state/library_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "tools/serve/state/replace_file.h"
#include "tools/serve/words/log.h"

namespace shardmat::serve {

namespace fs = std::filesystem;

namespace {

constexpr const char *kOwn = ".shardmat-", *kArrays = ".csr", *kAside = ".aside";

/// The matrix of a file of arrays, NAME.NUMBER.csr, also of one that was set aside; empty for other files.
std::string matrix_of(std::string file) {
  if (file.ends_with(kAside)) file.resize(file.size() - std::strlen(kAside));
  if (!file.ends_with(kArrays)) return {};
  file.resize(file.size() - std::strlen(kArrays));
  const std::size_t number = file.find_last_not_of("0123456789");
  return number == std::string::npos || file[number] != '.' || number + 1 == file.size() ? std::string()
                                                                                         : file.substr(0, number);
}

Problem no_disk(const char* what, int error) {
  return make_problem(507, "no_disk", fmt::format("{}: {}", what, std::strerror(error)));
}

}  // namespace

LibraryFiles::LibraryFiles(fs::path library, const std::string& id) : library_(std::move(library)), folder_(kOwn + id) {}

std::optional<Problem> LibraryFiles::make_folder() const {
  std::error_code error;
  fs::create_directory(library_ / folder_, error);
  if (error) return no_disk("the library takes no files", error.value());
  return std::nullopt;
}

bool LibraryFiles::is_of_service(const std::string& source) {
  return source.starts_with(kOwn) || source.find(std::string("/") + kOwn) != std::string::npos;
}

void LibraryFiles::clean(const std::vector<WantedMatrix>& matrices) const {
  std::set<std::string> sources;
  std::map<std::string, std::string> lacking;  // the file of each matrix that lacks it, by the name of the matrix
  std::error_code error;
  for (const WantedMatrix& matrix : matrices) {
    sources.insert(matrix.source);
    if (matrix.of_arrays && !fs::exists(library_ / matrix.source, error)) lacking[matrix.name] = matrix.source;
  }
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(library_ / folder_, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    files.push_back(entry->path());
  for (const fs::path& file : files) {
    std::error_code ignored;
    const std::string name = file.filename().string();
    if (sources.contains(own(name))) continue;
    const auto lacks = lacking.find(matrix_of(name));
    if (lacks == lacking.end()) fs::remove(file, ignored);
    else if (!name.ends_with(kAside) && rename_without_replacing(file, file.string() + kAside) == 0)
      log_line(fmt::format("WARNING: {} lacks {}; {} has other arrays of it, and is kept as {}{}", lacks->first,
                           lacks->second, own(name), name, kAside));
  }
  fs::remove(library_ / folder_, error);  // if it is empty
}

void LibraryFiles::remove(const std::string& source) const {
  std::error_code ignored;
  if (source.starts_with(folder_ + "/")) fs::remove(library_ / source, ignored);
}

int rename_without_replacing(const fs::path& from, const fs::path& to) {
  if (link(from.c_str(), to.c_str()) == 0) return unlink(from.c_str()), 0;
  if (errno == EEXIST) return EEXIST;
  constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE, for file systems without links
  if (syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), kNoReplace) == 0) return 0;
  return errno;
}

IncomingFile::~IncomingFile() { close(true); }

void IncomingFile::close(bool kept) {
  if (!kept && !name_.empty()) unlink(name_.c_str());
  if (!temporary_.empty()) unlink(temporary_.c_str());
  if (file_ >= 0) ::close(file_);
  file_ = -1, temporary_.clear(), name_.clear();
}

std::optional<Problem> IncomingFile::open() {
  file_ = ::open(library_.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
  if (file_ >= 0) return std::nullopt;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT && errno != EINVAL)
    return no_disk("the library takes no files", errno);
  if (auto problem = library_.make_folder()) return problem;
  fs::path name = library_.path() / library_.own(fmt::format("incoming.{}", number_));
  file_ = ::open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
  if (file_ < 0) return no_disk("the library takes no files", errno);
  temporary_ = std::move(name);
  return std::nullopt;
}

std::optional<Problem> IncomingFile::write(std::span<const std::byte> bytes) {
  if (file_ < 0)
    if (auto problem = open()) return problem;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return no_disk("the file cannot be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return std::nullopt;
}

std::optional<Problem> IncomingFile::finish(const std::string& source) {
  if (fsync(file_) != 0) return no_disk("the file cannot be written", errno);
  if (source.starts_with(library_.own("")))
    if (auto problem = library_.make_folder()) return problem;
  const fs::path name = library_.path() / source;
  int error = 0;
  if (!temporary_.empty()) error = rename_without_replacing(temporary_, name);
  else if (linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", file_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
    error = errno;
  if (error == EEXIST)
    return make_problem(409, "exists", fmt::format("the library has a file {}; take another name", source));
  if (error != 0) return no_disk("the file cannot get its name", error);
  temporary_.clear(), name_ = name;
  flush_folder(name.parent_path());  // the name outlives a loss of power
  return std::nullopt;
}

}  // namespace shardmat::serve
