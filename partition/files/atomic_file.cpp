#include "partition/files/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "kernels/base/error.h"
#include "partition/files/checksum.h"

namespace shardmat {
namespace {

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

/// A device or a pipe, which nothing may take the place of.
bool is_special(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_other(path, ignored);
}

/// Where a symbolic link leads to, also if nothing is there yet; any other path itself.
std::filesystem::path follow_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as Linux
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, error); ++i)
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  return path;
}

/// Bytes of the longest name in a directory.
std::size_t longest_name(const std::filesystem::path& directory) {
  const long most = ::pathconf(directory.c_str(), _PC_NAME_MAX);
  return most > 0 ? static_cast<std::size_t>(most) : 255;
}

/// The name of a file, or, where nothing could be added to it, its begin and a checksum of all of it.
std::string short_name(const std::filesystem::path& target) {
  constexpr std::size_t kAdded = 40;  // at most: what makes a name that of a temporary, and what libzip adds to that
  const std::string name = target.filename().string();
  const std::size_t room = std::max(longest_name(directory_of(target)), 2 * kAdded) - kAdded;
  if (name.size() <= room) return name;
  std::size_t end = room - 17;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // within a letter of UTF-8
  return fmt::format("{}~{:016x}", name.substr(0, end), xxh64(name.data(), name.size()));
}

/// Names of temporaries that exist or soon will: a list that a signal handler can read at any moment. It only grows.
struct UnfinishedNames {
  std::array<std::atomic<const char*>, 64> places{};
  std::atomic<UnfinishedNames*> next{nullptr};
};
constinit UnfinishedNames unfinished;

/// A place in the list that has this name from now on.
std::atomic<const char*>& remember(const char* name) {
  for (UnfinishedNames* names = &unfinished;; names = names->next.load()) {
    for (std::atomic<const char*>& place : names->places) {
      const char* empty = nullptr;
      if (place.load() == nullptr && place.compare_exchange_strong(empty, name)) return place;
    }
    if (names->next.load() != nullptr) continue;
    auto more = std::make_unique<UnfinishedNames>();
    UnfinishedNames* none = nullptr;
    if (names->next.compare_exchange_strong(none, more.get())) more.release();  // stays until the process ends
  }
}

/// Of `path`, as which the file or directory `written` is known.
void flush_to_disk(const std::filesystem::path& written, const std::filesystem::path& path) {
  const int fd = ::open(written.c_str(), O_RDONLY | O_CLOEXEC);
  const bool flushed = fd >= 0 && ::fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!flushed)
    throw Error(ErrorKind::resources, fmt::format("cannot flush {} to disk: {}", path.string(), std::strerror(error)));
}

}  // namespace

UnfinishedFile::UnfinishedFile(const std::filesystem::path& path) : path_(path), place_(remember(path_.c_str())) {}

UnfinishedFile::~UnfinishedFile() { place_ = nullptr; }

void remove_unfinished_files() noexcept {
  for (const UnfinishedNames* names = &unfinished; names != nullptr; names = names->next.load())
    for (const std::atomic<const char*>& place : names->places)
      if (const char* const temporary = place; temporary != nullptr) ::unlink(temporary);
}

void check_writable(const std::filesystem::path& path) {
  if (!path.has_filename())
    throw Error(ErrorKind::input, fmt::format("cannot write \"{}\": the name of the file is missing", path.string()));
  const std::filesystem::path target = follow_links(path), directory = directory_of(target);
  std::error_code ignored;
  if (std::filesystem::is_symlink(target, ignored))
    throw Error(ErrorKind::input, fmt::format("cannot write {}: the symbolic link leads in a circle", path.string()));
  if (!std::filesystem::is_directory(directory, ignored))
    throw Error(ErrorKind::input, fmt::format("cannot write {}: there is no directory {}; create it first", path.string(),
                                              directory.string()));
  if (std::filesystem::is_directory(path, ignored))
    throw Error(ErrorKind::input, fmt::format("cannot write {}: it is a directory; give a file name", path.string()));
  if (is_special(path)) {
    if (::access(path.c_str(), W_OK) != 0)
      throw Error(ErrorKind::resources, fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  } else if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    const char* const reason = std::strerror(errno);
    throw Error(
        ErrorKind::resources,
        fmt::format("cannot write {}: no file can be made in the directory {} ({}); write to another directory",
                    path.string(), std::filesystem::absolute(directory, ignored).lexically_normal().string(), reason));
  }
  if (target.filename().string().size() > longest_name(directory))
    throw Error(ErrorKind::input, fmt::format("cannot write {}: its name is longer than the {} bytes that a name may have "
                                              "there; choose a shorter one",
                                              path.string(), longest_name(directory)));
}

AtomicFile::AtomicFile(const std::filesystem::path& path)
    : path_(path), target_(follow_links(path)), temporary_(path), is_own_(is_special(path)) {
  check_writable(path);
  if (!is_own_) create_temporary();
}

void AtomicFile::create_temporary() {
  constexpr int kMostTries = 1000;  // names that killed processes with this number left behind
  for (int i = 1; i <= kMostTries; ++i) {
    const std::string mark = i == 1 ? "" : fmt::format(".{}", i);
    temporary_ = directory_of(target_) / fmt::format(".{}.{}{}.tmp", short_name(target_), ::getpid(), mark);
    unfinished_.emplace(temporary_);  // before it exists, so that a signal at any moment leaves nothing
    const int descriptor = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    const int error = errno;
    if (descriptor >= 0) {
      ::close(descriptor);
      return;
    }
    unfinished_.reset();
    if (error != EEXIST)
      throw Error(ErrorKind::resources, fmt::format("cannot write {}: {}", path_.string(), std::strerror(error)));
  }
  throw Error(ErrorKind::resources, fmt::format("cannot write {}: there are {} temporary files such as {}; remove them",
                                                path_.string(), kMostTries, temporary_.string()));
}

int AtomicFile::open_flags() const { return O_TRUNC | O_CLOEXEC | (is_own_ ? 0 : O_NOFOLLOW); }

AtomicFile::~AtomicFile() {
  if (is_own_) return;
  std::error_code ignored;
  if (!committed_) std::filesystem::remove(temporary_, ignored);
}

void AtomicFile::require_file(const char* format) const {
  if (is_own_)
    throw Error(ErrorKind::usage,
                fmt::format("cannot write {}: {} cannot go to a device or a pipe; name a file", path_.string(), format));
}

void AtomicFile::flush() const {
  if (!is_own_) flush_to_disk(temporary_, path_);
}

void AtomicFile::rename() {
  if (is_own_) return;
  std::error_code error;
  std::filesystem::rename(temporary_, target_, error);
  if (error)
    throw Error(ErrorKind::resources,
                fmt::format("cannot rename {} to {}: {}", temporary_.string(), path_.string(), error.message()));
  committed_ = true;
}

void AtomicFile::flush_directory() const {
  if (!is_own_) flush_to_disk(directory_of(target_), path_);
}

void AtomicFile::commit() {
  flush();
  rename();
  flush_directory();
}

}  // namespace shardmat
