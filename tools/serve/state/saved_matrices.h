// The list of matrices on the disk, which the next service reads. It is written on a thread of its own, because a disk may
// take seconds. A list that could not be written is written again later.
//
// Threads: the thread of the event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/serve/http/background.h"
#include "tools/serve/http/event_loop.h"
#include "tools/serve/state/state_directory.h"

namespace shardmat::serve {

class SavedMatrices {
 public:
  /// `wanted` is called for the list as it should be. REQUIRES: loop and state outlive this.
  SavedMatrices(EventLoop& loop, const StateDirectory& state, std::function<std::vector<WantedMatrix>()> wanted);
  SavedMatrices(const SavedMatrices&) = delete;
  SavedMatrices& operator=(const SavedMatrices&) = delete;

  /// The list of the service before. Throws Error(input).
  std::vector<WantedMatrix> read();
  /// Begins to write the list as it is now, unless the disk has it.
  void save();
  /// Calls `tried` once everything that was to be saved before this call is on the disk, or could not be written.
  void when_tried(std::function<void()> tried);
  /// The same, and waits for the disk. Throws Error(resources).
  void save_now();

  /// Null if the disk has no matrix of this name.
  const WantedMatrix* find(const std::string& name) const;
  /// Why the last attempt failed; empty if it succeeded.
  const std::string& why_unsaved() const { return why_unsaved_; }
  std::uint64_t failed_attempts() const { return failed_attempts_; }

 private:
  using List = std::map<std::string, WantedMatrix>;  ///< by name
  struct Attempt {
    std::uint64_t number = 0;
    List list;
    std::string error;  ///< empty: it succeeded
  };
  Attempt next_attempt();
  void write(Attempt& attempt);
  void begin(Attempt attempt);
  void take(const Attempt& attempt);
  void finish(const Attempt& attempt);

  const StateDirectory& state_;
  std::function<std::vector<WantedMatrix>()> wanted_;
  List saved_;  ///< what the disk has
  std::string why_unsaved_;
  double delay_ = 0;  ///< seconds until the next attempt after one that failed
  std::uint64_t failed_attempts_ = 0, last_attempt_ = 0, taken_ = 0;
  bool writes_ = false, again_ = false;              ///< an attempt is under way; the list has changed since it began
  std::vector<std::function<void()>> tried_, next_;  ///< called after the attempt under way, and after the one that follows
  std::mutex disk_;                                  ///< held while the file is written
  std::uint64_t written_ = 0;                        ///< number of the attempt that was written last; guarded by disk_
  Alarm later_;
  Background background_;  ///< after all that its work uses
};

}  // namespace shardmat::serve
