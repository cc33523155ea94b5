// Which shard files the service has made, and of which bytes. It is written down in the state directory, so that it is known
// after a restart, too; a name alone says nothing, since files come and go.
//
// Threads: one at a time.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace shardmat::serve {

/// By what a file is known without reading it.
struct FileMark {
  std::uint64_t bytes = 0;
  std::int64_t seconds = 0, nanoseconds = 0;  ///< when it was last written
  bool operator==(const FileMark&) const = default;
};
/// Nothing if it is no regular file.
std::optional<FileMark> mark_of(const std::filesystem::path& file);
/// True if the file is the one that had the mark. Archives keep whole seconds.
bool is_same(const FileMark& now, const FileMark& then);

/// By what the bytes of a file are known as long as this process runs: device, inode, bytes, and when contents and inode
/// were last changed: the latter cannot be set back.
using FileKey = std::tuple<dev_t, ino_t, off_t, time_t, long, time_t, long>;
FileKey key_of(const struct stat& status);
/// Nothing if it is no regular file.
std::optional<FileKey> key_of(const std::filesystem::path& file);

struct ShardRecord {
  std::string sha256;  ///< of the source
  FileMark source, shard;
};

class ShardRecords {
 public:
  /// A file that this class did not write is set aside, with a warning: then nothing is known.
  explicit ShardRecords(std::filesystem::path file);

  /// Both write the file. If that is impossible, the log says so, and a restart knows less.
  void add(const std::string& source, const ShardRecord& record);
  void erase(const std::string& source);
  /// Null if the service has made no shard file of this source. Either file may have changed since.
  const ShardRecord* of(const std::string& source) const;

 private:
  void write() const;

  std::filesystem::path file_;
  std::map<std::string, ShardRecord> records_;
};

}  // namespace shardmat::serve
