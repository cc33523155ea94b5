// A regular file open for reading. Nothing else is ever opened to be read: a FIFO, a device or a socket would wait for
// ever, and pages of a mapped file that is truncated would end the process. So files are opened without blocking, looked
// at through the descriptor, and read with pread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace shardmat {

/// Opens `path` for reading (O_CLOEXEC) if it is a regular file, or a link to one; there is no moment at which another file
/// could take its place. Returns a descriptor that the caller closes; prefer InputFile, which does. Throws Error(input)
/// naming the path, what it is and a remedy: missing (with the nearest name), unreadable, a directory, a FIFO, a socket, a
/// device.
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
  /// Bytes when it was opened.
  std::int64_t size() const { return size_; }
  /// Time of its last change when it was opened, in nanoseconds since 1970.
  std::int64_t changed_ns() const { return changed_ns_; }
  /// Reads bytes [offset, offset + size) of the file, which must lie in [0, size()). Throws Error(input) if the file has
  /// become shorter, or cannot be read.
  void read(void* to, std::int64_t offset, std::int64_t size) const;
  /// All bytes. Throws Error(input) if they are more than `most`; `what` names what should be in the file.
  std::string read_all(std::int64_t most, const char* what) const;
  /// Asks the kernel to read these bytes ahead.
  void will_need(std::int64_t begin, std::int64_t size) const;
  /// Throws Error(input) if the file's size or time of change is not what it was when it was opened.
  void require_unchanged() const;

 private:
  std::filesystem::path path_;
  int descriptor_;
  std::int64_t size_ = 0;
  std::int64_t changed_ns_ = 0;
};

}  // namespace shardmat
