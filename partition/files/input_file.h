// A regular file open for reading. Only regular files are opened, because a FIFO, a device or a socket could block for ever.
// Files are not mapped, because truncating a mapped file would end the process. So a file is opened without blocking,
// checked through its descriptor, and read with pread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace shardmat {

/// Opens `path` for reading (O_CLOEXEC) if it is a regular file, or a link to one. The checked file is always the opened
/// file. Returns a descriptor that the caller must close; prefer InputFile, which closes it. Throws Error(input) with the
/// path, the reason and a remedy for a missing path (with the nearest name), an unreadable file, a directory, a FIFO, a
/// socket or a device.
int open_regular_file(const std::filesystem::path& path);

/// Owns the descriptor of a regular file. Any thread may read.
class InputFile {
 public:
  /// Throws what open_regular_file() throws.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  /// Size in bytes when the file was opened.
  std::int64_t size() const { return size_; }
  /// Time of the last change, in nanoseconds since 1970, when the file was opened.
  std::int64_t changed_ns() const { return changed_ns_; }
  /// Reads bytes [offset, offset + size) of the file, which must lie in [0, size()). Throws Error(input) if the file has
  /// become shorter, or cannot be read.
  void read(void* to, std::int64_t offset, std::int64_t size) const;
  /// Reads all bytes. Throws Error(input) if there are more than `most`; `what` says what should be in the file.
  std::string read_all(std::int64_t most, const char* what) const;
  /// Asks the kernel to read these bytes ahead.
  void will_need(std::int64_t begin, std::int64_t size) const;
  /// Throws Error(input) if the file's size or time of change is no longer that of opening.
  void require_unchanged() const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  std::int64_t size_ = 0;
  std::int64_t changed_ns_ = 0;
};

}  // namespace shardmat
