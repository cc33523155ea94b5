// The directory whose matrix files the service may load, and nothing outside of it: neither by "..", nor by links, nor by a
// file that is replaced between a check and its use.
//
// Threads: any thread, several at a time.
#pragma once

#include <filesystem>
#include <string>

namespace shardmat::service {

class Library {
 public:
  /// Throws Error(input) if `directory` cannot be opened, and Error(resources) if this kernel cannot keep a path below a
  /// directory (openat2, Linux 5.6).
  explicit Library(const std::filesystem::path& directory);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Opens the regular file `name` for reading and returns its descriptor. Throws Error(input), naming only `name`, for a
  /// path that leaves the library, and for what is not a readable regular file.
  int open(const std::string& name) const;

 private:
  int directory_;
};

/// A file of a library, and a path by which readers open this very file under its own suffix: a link in `directory` to the
/// descriptor of this process. The path vanishes with the object.
class LibraryFile {
 public:
  LibraryFile(const Library& library, const std::string& name, const std::filesystem::path& directory);
  ~LibraryFile();
  LibraryFile(const LibraryFile&) = delete;
  LibraryFile& operator=(const LibraryFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  int descriptor_;
  std::filesystem::path path_;
};

}  // namespace shardmat::service
