#include "tools/serve/state/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace shardmat::serve {
namespace {

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Whoever may read the old file may read the new one, unless it was of a user or group to whom this one can give nothing.
bool keep_owner(int descriptor, const std::filesystem::path& file) {
  struct stat old {
  }, mine{};
  if (stat(file.c_str(), &old) != 0) return errno == ENOENT;
  if (fstat(descriptor, &mine) != 0) return false;
  const bool is_mine = mine.st_uid == old.st_uid && mine.st_gid == old.st_gid;
  if (!is_mine && fchown(descriptor, old.st_uid, old.st_gid) != 0) return errno == EPERM;
  return fchmod(descriptor, old.st_mode & 07777) == 0;
}

}  // namespace

std::error_code replace_file(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path temporary = file.parent_path() / ("." + file.filename().string() + ".tmp");
  const auto failure = [] { return std::error_code(errno, std::generic_category()); };
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return failure();
  std::error_code error;
  if (!keep_owner(descriptor, file) || !write_all(descriptor, text) || fsync(descriptor) != 0) error = failure();
  if (close(descriptor) != 0 && !error) error = failure();  // some disks say only now that they are full
  if (!error && std::rename(temporary.c_str(), file.c_str()) != 0) error = failure();
  if (error) unlink(temporary.c_str());
  else flush_folder(file.has_parent_path() ? file.parent_path() : ".");
  return error;
}

void flush_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

}  // namespace shardmat::serve
