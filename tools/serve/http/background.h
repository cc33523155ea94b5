// A second thread for work that takes longer than the event loop may stand still, as reading a large text.
#pragma once

#include <functional>
#include <memory>

#include "tools/serve/http/event_loop.h"

namespace shardmat::serve {

class Background {
 public:
  /// Starts its thread with the first work. REQUIRES: the loop outlives it.
  explicit Background(EventLoop& loop);
  /// Waits for the work under way, and drops the rest. REQUIRES: the event loop runs no more.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Calls `work` on the other thread, and then `done` on the thread of the event loop. Pieces of work follow one another in
  /// the order of these calls. `work` must not throw. Both functions are destroyed on the thread of the event loop.
  void run(std::function<void()> work, std::function<void()> done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shardmat::serve
