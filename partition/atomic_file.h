// A file that appears under its real name only when it is complete and on disk.
#pragma once

#include <filesystem>

namespace shardmat {

/// Throws what AtomicFile would throw for this path; for asking before long work.
void check_writable(const std::filesystem::path& path);

/// Removes the temporaries of all files of this process that are not committed. May be called in a signal handler; the
/// process must end then.
void remove_unfinished_files() noexcept;

/// Owns a temporary name beside `path`. Write to temporary(), then commit(). Without commit the temporary is removed, so
/// an exception or a full disk leaves nothing behind (SIGKILL leaves only the temporary, named ".NAME.PID.tmp"). A device or
/// a pipe, such as /dev/null, is its own temporary and stays; of a symbolic link the file is replaced that it leads to.
class AtomicFile {
 public:
  /// Throws Error(input) if the name is empty or the directory does not exist, Error(resources) if it is not writable.
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& temporary() const { return temporary_; }
  /// Flushes file and directory to disk and renames. The file must be closed by its writer before.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path target_;  ///< with links followed
  std::filesystem::path temporary_;
  bool is_own_ = false;  ///< a device or a pipe
  bool committed_ = false;
};

}  // namespace shardmat
