// Writes bytes to a file through a buffer, and reports errors such as a full disk.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "partition/files/atomic_file.h"

namespace shardmat {

class OutputFile {
 public:
  /// Writes the temporary of `file`. Like all functions of this class, throws Error(resources) if it cannot be written.
  explicit OutputFile(const AtomicFile& file);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void append(std::string_view bytes);
  /// Must be called after the last append(); otherwise the end of the file may be missing.
  void close();

 private:
  void write(std::string_view bytes);
  void flush();

  std::filesystem::path path_;
  int descriptor_;
  std::string buffer_;
};

/// Throws Error(resources), which says that `path` cannot be written and why.
[[noreturn]] void fail_write(const std::filesystem::path& path, const std::string& why);

}  // namespace shardmat
