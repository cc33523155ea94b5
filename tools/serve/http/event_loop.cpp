#include "tools/serve/http/event_loop.h"

#include <sched.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <list>
#include <utility>

#include "kernels/base/parallel.h"

namespace shardmat::serve {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

struct EventLoop::Impl {
  asio::io_context io{1};
  std::list<asio::signal_set> signals;
  std::deque<std::function<void()>> posted;  ///< not in Asio's queue, which looks for events before each action in it
  Clock::time_point awake_until;
  const int cores = usable_cores();

  void wait_for(asio::signal_set& set, std::function<void()> action) {
    set.async_wait([this, &set, action = std::move(action)](error_code error, int) {
      if (error) return;
      action();
      wait_for(set, action);
    });
  }
};

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {}
EventLoop::~EventLoop() = default;

void EventLoop::run() {
  const auto work = asio::make_work_guard(impl_->io);
  while (!impl_->io.stopped()) {
    for (std::size_t left = impl_->posted.size(); left > 0 && !impl_->io.stopped(); --left) {
      const auto action = std::move(impl_->posted.front());
      impl_->posted.pop_front();
      action();
    }
    if (!impl_->posted.empty()) impl_->io.poll_one();  // actions that post further ones keep nobody else waiting
    else if (Clock::now() >= impl_->awake_until) impl_->io.run_one();
    else if (impl_->io.poll_one() == 0) sched_yield();
  }
}

void EventLoop::stay_awake(double seconds) {
  if (impl_->cores < 2) return;
  impl_->awake_until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void EventLoop::stop() { impl_->io.stop(); }
void EventLoop::post(std::function<void()> action) { impl_->posted.push_back(std::move(action)); }
void EventLoop::post_from_any_thread(std::function<void()> action) { asio::post(impl_->io, std::move(action)); }
asio::io_context& EventLoop::io() { return impl_->io; }

void EventLoop::on_signals(std::initializer_list<int> numbers, std::function<void()> action) {
  asio::signal_set& set = impl_->signals.emplace_back(impl_->io);
  for (const int number : numbers) set.add(number);
  impl_->wait_for(set, std::move(action));
}

struct Alarm::Impl {
  explicit Impl(asio::io_context& io) : timer(io) {}
  asio::steady_timer timer;
  std::uint64_t started = 0;  ///< tells an action that is already on its way that it was cancelled
};

Alarm::Alarm(EventLoop& loop) : impl_(std::make_shared<Impl>(loop.io())) {}
Alarm::~Alarm() { cancel(); }

void Alarm::start(double seconds, std::function<void()> action) {
  constexpr double kMost = 1e9;  // more than a clock counts
  const std::uint64_t mine = ++impl_->started;
  impl_->timer.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(std::min(seconds, kMost))));
  impl_->timer.async_wait([impl = impl_, mine, action = std::move(action)](error_code error) {
    if (!error && impl->started == mine) action();
  });
}

void Alarm::cancel() {
  ++impl_->started;
  impl_->timer.cancel();
}

struct ReadWatch::Impl : std::enable_shared_from_this<ReadWatch::Impl> {
  Impl(asio::io_context& io, int fd, std::function<void()> action) : descriptor(io, fd), ready(std::move(action)) {}

  void wait() {
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read, [me = shared_from_this()](error_code error) {
      if (error || me->over) return;
      me->ready();
      if (!me->over) me->wait();
    });
  }

  asio::posix::stream_descriptor descriptor;
  std::function<void()> ready;
  bool over = false;
};

ReadWatch::ReadWatch(EventLoop& loop, int descriptor, std::function<void()> ready)
    : impl_(std::make_shared<Impl>(loop.io(), descriptor, std::move(ready))) {
  impl_->wait();
}

ReadWatch::~ReadWatch() {
  impl_->over = true;
  impl_->descriptor.release();  // cancels the wait and leaves the descriptor open
}

}  // namespace shardmat::serve
