#include "tools/serve/http/background.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace shardmat::serve {

/// Finished work waits here, not in the event loop: what it keeps must not outlive the service.
struct Background::State : std::enable_shared_from_this<State> {
  struct Piece {
    std::function<void()> work, done;
  };

  explicit State(EventLoop& event_loop) : loop(event_loop) {}

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return over || !waiting.empty(); });
      if (over) return;
      Piece piece = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      piece.work();
      lock.lock();
      finished.push_back(std::move(piece));
      loop.post_from_any_thread([weak = weak_from_this()] {
        if (const auto state = weak.lock()) state->finish_one();
      });
    }
  }

  void finish_one() {
    std::optional<Piece> piece;
    {
      const std::lock_guard lock(mutex);
      if (finished.empty()) return;
      piece = std::move(finished.front());
      finished.pop_front();
    }
    piece->done();
  }

  EventLoop& loop;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Piece> waiting, finished;
  bool over = false;
  std::thread thread;
};

Background::Background(EventLoop& loop) : state_(std::make_shared<State>(loop)) {}

Background::~Background() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->over = true;
  }
  state_->wake.notify_one();
  if (state_->thread.joinable()) state_->thread.join();
}

void Background::run(std::function<void()> work, std::function<void()> done) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.push_back({std::move(work), std::move(done)});
  }
  state_->wake.notify_one();
  if (!state_->thread.joinable()) state_->thread = std::thread([state = state_.get()] { state->run(); });
}

}  // namespace shardmat::serve
