// Turns files that clients have sent into shard files, one after another, by `shardmat partition` in a process of its own:
// a load of the shard file has each rank read its own rows, and checks a checksum of each block. FILE becomes FILE.h5; FILE
// stays. What is not complete lies in the library's own folder, and is gone after the end of the service.
//
// Threads: the thread of the event loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tools/serve/http/background.h"
#include "tools/serve/state/library_files.h"
#include "tools/serve/state/shard_records.h"

namespace shardmat::serve {

class Conversions {
 public:
  /// `records`: a file of the state directory. Throws Error(input) if it is wrong.
  Conversions(EventLoop& loop, const LibraryFiles& library, std::string program, const std::filesystem::path& records);
  /// Ends the process under way.
  ~Conversions();
  Conversions(const Conversions&) = delete;
  Conversions& operator=(const Conversions&) = delete;

  static std::string shard_of(const std::string& source) { return source + ".h5"; }
  /// `sha256` and `mark` are those of the source.
  void add(const std::string& source, const std::string& sha256, const FileMark& mark, std::size_t parts);
  /// The source is about to go: its conversion ends, or does not begin. False if it is just giving the shard file its name.
  bool cancel(const std::string& source);

  struct State {
    const char* word = "waiting";  ///< "waiting", "running", "failed"
    std::string reason;

    bool has_failed() const { return word == std::string_view("failed"); }
  };
  /// Null if the file was not sent to this service, or is converted, or has other bytes than those of which a conversion
  /// failed.
  const State* of(const std::string& source);
  /// What has been converted, also by earlier services with this state directory.
  ShardRecords& records() { return records_; }

 private:
  struct Work;
  struct Known {
    State state;
    std::shared_ptr<Work> work;
  };

  const LibraryFiles& library_;
  std::string program_;
  std::uint64_t last_number_ = 0;
  ShardRecords records_;
  std::map<std::string, Known> known_;
  std::shared_ptr<std::atomic<bool>> over_ = std::make_shared<std::atomic<bool>>(false);
  Background background_;
};

}  // namespace shardmat::serve
