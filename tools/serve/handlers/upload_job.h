// A body that becomes a file of the library. It is written, and its SHA-256 formed, on a thread of its own as it arrives.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/serve/gate/sha256.h"
#include "tools/serve/http/background.h"
#include "tools/serve/http/routes.h"
#include "tools/serve/state/library_files.h"
#include "tools/serve/state/shard_records.h"

namespace shardmat::serve {

/// What uploads share: their thread and where they go.
class Uploads {
 public:
  Uploads(EventLoop& loop, const LibraryFiles& files, std::uint64_t most)
      : library(files), most_bytes(most), background(loop) {}

  const LibraryFiles& library;
  const std::uint64_t most_bytes;
  Background background;

  std::uint64_t new_number() { return ++last_number_; }

 private:
  std::uint64_t last_number_ = 0;
};

struct Uploaded {
  std::string source;  ///< path in the library
  std::uint64_t bytes = 0;
  Sha256 hash{};
  FileMark mark;
};

/// Takes the body of the request as the file `source`. `what` is its name for messages. `complete` is called once the file
/// has its name, and answers; if the client has left or may not do this any more, the file goes instead. Refuses a body that
/// is too large, or for which the disk has no room, without reading it.
Accepted take_file(const std::shared_ptr<Uploads>& uploads, const Call& call, const std::string& source,
                   const std::string& what, std::optional<Sha256> wanted,
                   std::function<void(const Uploaded&, const std::function<void(Reply)>& done)> complete);

}  // namespace shardmat::serve
