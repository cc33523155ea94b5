// Turns files that clients have sent into shard files, one after another, by `shardmat partition` in a process of its own:
// a load of the shard file has each rank read its own rows, and checks a checksum of each block. FILE becomes FILE.h5; FILE
// stays. What is not complete lies in the library's own folder, and is gone after the end of the service.
//
// Threads: the thread of the event loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/serve/http/background.h"
#include "tools/serve/state/library_files.h"

namespace shardmat::serve {

class Conversions {
 public:
  Conversions(EventLoop& loop, const LibraryFiles& library, std::string program);
  /// Ends the process under way.
  ~Conversions();
  Conversions(const Conversions&) = delete;
  Conversions& operator=(const Conversions&) = delete;

  static std::string shard_of(const std::string& source) { return source + ".h5"; }
  void add(const std::string& source, std::size_t parts);
  /// The file is gone.
  void forget(const std::string& source) { known_.erase(source); }

  struct State {
    const char* word = "waiting";  ///< "waiting", "running", "failed"
    std::string reason;
  };
  /// Null if the file was not sent to this service, or is converted.
  const State* of(const std::string& source) const;

 private:
  struct Work;

  const LibraryFiles& library_;
  std::string program_;
  std::uint64_t last_number_ = 0;
  std::map<std::string, State> known_;
  std::shared_ptr<std::atomic<bool>> over_ = std::make_shared<std::atomic<bool>>(false);
  EventLoop& loop_;
  Background background_;
};

}  // namespace shardmat::serve
