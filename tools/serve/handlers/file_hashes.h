// SHA-256 of files of the library, each formed once unless the file changes. Files are read in slices on a thread of their
// own, several in turns, and no further once nobody waits.
//
// Threads: the thread of the event loop.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "runtime/service/wire/library.h"
#include "tools/serve/http/background.h"
#include "tools/serve/http/http_message.h"

namespace shardmat::serve {

class FileHashes {
 public:
  FileHashes(EventLoop& loop, const std::filesystem::path& library) : library_(library), background_(loop) {}

  /// Answers with path, size and hash of the file. `waits` expires when the client leaves.
  void describe(const std::string& source, std::weak_ptr<const void> waits, std::function<void(Reply)> done);

 private:
  /// Device, inode, bytes, and when contents and inode were last changed: the latter cannot be set back.
  using Key = std::tuple<dev_t, ino_t, off_t, time_t, long, time_t, long>;
  struct File;

  void begin(const std::shared_ptr<File>& file);
  void go_on(const std::shared_ptr<File>& file);

  service::Library library_;
  std::map<Key, std::string> known_;
  std::map<Key, std::shared_ptr<File>> read_;  ///< that are being read
  Background background_;                      ///< after what its work uses
};

}  // namespace shardmat::serve
