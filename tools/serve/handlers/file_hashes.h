// SHA-256 of files of the library, each formed once unless the file changes. Files are read in slices on a thread of their
// own, several in turns, and no further once nobody waits.
//
// Threads: the thread of the event loop.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "runtime/service/wire/library.h"
#include "tools/serve/http/background.h"
#include "tools/serve/http/http_message.h"
#include "tools/serve/state/shard_records.h"

namespace shardmat::serve {

class FileHashes {
 public:
  FileHashes(EventLoop& loop, const std::filesystem::path& library) : library_(library), background_(loop) {}

  /// Answers with path, size and hash of the file. `waits` expires when the client leaves.
  void describe(const std::string& source, std::weak_ptr<const void> waits, std::function<void(Reply)> done);

 private:
  struct File;

  void begin(const std::shared_ptr<File>& file);
  void go_on(const std::shared_ptr<File>& file);

  service::Library library_;
  std::map<FileKey, std::string> known_;
  std::map<FileKey, std::shared_ptr<File>> read_;  ///< that are being read
  Background background_;                          ///< after what its work uses
};

}  // namespace shardmat::serve
