// A file that appears under its real name only when it is complete and on disk.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>

namespace shardmat {

/// Throws what AtomicFile would throw for this path. Call it before long work.
void check_writable(const std::filesystem::path& path);

/// Registers a file for remove_unfinished_files() as long as this object exists.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::filesystem::path& path);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

 private:
  std::filesystem::path path_;
  std::atomic<const char*>& place_;  ///< in the list of all
};

/// Removes all files that an UnfinishedFile registers, among them the temporaries of all AtomicFiles. May be called in a
/// signal handler; the process must end afterwards.
void remove_unfinished_files() noexcept;

/// Owns a temporary file in the directory of `path`: always a new, empty file, never an existing file or link. Open
/// temporary() for writing with open_flags(), then commit(). Without commit() the temporary is removed, so an exception or a
/// full disk leaves nothing behind. (SIGKILL leaves the temporary, named ".NAME.PID.tmp", or ".NAME.PID.2.tmp" if that
/// exists; a long NAME is shortened.) A device or a pipe, such as /dev/null, is its own temporary and stays. If `path` is a
/// symbolic link, the file that it points to is replaced.
class AtomicFile {
 public:
  /// Throws Error(input) if the name is empty or the directory does not exist, Error(resources) if it is not writable.
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& temporary() const { return temporary_; }
  /// Flags for open() besides the access mode: truncate, close on exec, and do not follow links (except to a device).
  int open_flags() const;
  /// For writers that need more than a stream: throws Error(usage) for a device or a pipe. `format` is named in the message.
  void require_file(const char* format) const;
  /// Flushes file and directory to disk and renames the file. The writer must have closed it.
  void commit();
  /// The three steps of commit(), for several files that appear together (partition/files/atomic_files.h).
  void flush() const;
  void rename();
  void flush_directory() const;

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
