// A file that appears under its real name only when it is complete and on disk.
#pragma once

#include <filesystem>
#include <optional>

namespace shardmat {

/// Throws what AtomicFile would throw for this path; for asking before long work.
void check_writable(const std::filesystem::path& path);

/// Names a file for remove_unfinished_files() as long as it lives.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::filesystem::path& path);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

 private:
  std::filesystem::path path_;
};

/// Removes the files that UnfinishedFile names, among them the temporaries of all AtomicFiles. May be called in a signal
/// handler; the process must end then.
void remove_unfinished_files() noexcept;

/// Owns a temporary file beside `path`: a new and empty one, never a file or a link that somebody put there before. Open
/// temporary() for writing with open_flags(), then commit(). Without commit the temporary is removed, so an exception or a
/// full disk leaves nothing behind (SIGKILL leaves only the temporary, named ".NAME.PID.tmp", or ".NAME.PID.2.tmp" if there
/// was one; a long NAME is shortened). A device or a pipe, such as /dev/null, is its own temporary and stays; of a symbolic
/// link the file is replaced that it leads to.
class AtomicFile {
 public:
  /// Throws Error(input) if the name is empty or the directory does not exist, Error(resources) if it is not writable.
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& temporary() const { return temporary_; }
  /// Flags of open() beyond the access mode: truncate, close on exec, and follow no link unless it is a device's.
  int open_flags() const;
  /// For writers that need more than a stream, of a format with this name: throws Error(usage) for a device or a pipe.
  void require_file(const char* format) const;
  /// Flushes file and directory to disk and renames. The file must be closed by its writer before.
  void commit();

 private:
  void create_temporary();

  std::filesystem::path path_;
  std::filesystem::path target_;  ///< with links followed
  std::filesystem::path temporary_;
  bool is_own_ = false;  ///< a device or a pipe
  std::optional<UnfinishedFile> unfinished_;
  bool committed_ = false;
};

}  // namespace shardmat
