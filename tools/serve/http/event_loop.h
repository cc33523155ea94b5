// The one thread of the front end: it runs whatever is ready, and nothing in it may block. Asio stays behind this header and
// http_connection.h.
//
// Threads: everything here belongs to the thread that calls run(), except post_from_any_thread().
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace shardmat::serve {

class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Runs until stop() is called. An exception of an action ends it.
  void run();
  void stop();
  /// Runs `action` soon, after the present one. Call it on the thread that runs the loop.
  void post(std::function<void()> action);
  /// The same on any thread.
  void post_from_any_thread(std::function<void()> action);
  /// For so many seconds from now on the thread looks for events without sleeping, as it takes longer to wake it up than
  /// what is waited for takes. Other threads that want its core get it. 0: it may sleep again.
  void stay_awake(double seconds);
  /// Calls `action` for each of these signals, every time one comes.
  void on_signals(std::initializer_list<int> numbers, std::function<void()> action);

  boost::asio::io_context& io();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Calls one action later. No action runs after cancel(), a new start(), or the end of the object.
class Alarm {
 public:
  explicit Alarm(EventLoop& loop);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  void start(double seconds, std::function<void()> action);
  void cancel();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Calls `ready` each time a descriptor can be read, until the object is gone. Does not own the descriptor, which must stay
/// open as long as the object.
class ReadWatch {
 public:
  ReadWatch(EventLoop& loop, int descriptor, std::function<void()> ready);
  ~ReadWatch();
  ReadWatch(const ReadWatch&) = delete;
  ReadWatch& operator=(const ReadWatch&) = delete;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace shardmat::serve
