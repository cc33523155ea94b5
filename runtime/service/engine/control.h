// A rank's end of the control socket: takes commands, gives answers, and ends the process when the front end is gone.
//
// Threads: one thread calls next(), answer() and defer(), the engine's; any thread calls answer_deferred(). A thread of this
// object watches the socket meanwhile: it says that the rank is alive while a command takes long, and ends the process at
// the end of the stream, whatever the engine does.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

#include "runtime/service/wire/command.h"
#include "runtime/service/wire/frames.h"

namespace shardmat::service {

class Control {
 public:
  /// Takes over the socket of a rank that has introduced itself. `has_core`: this rank has a core for itself.
  Control(int socket, bool has_core);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// Blocks until there is a command. While it waits, this rank takes no CPU time, except for 0.2 ms after an answer if the
  /// command before came as soon and the last two were for one vector each: it takes longer to wake a process up. Ends the
  /// process if the front end is gone.
  Command next();
  /// The descriptor that came with the last command, which the caller then owns; -1 if none came.
  int take_descriptor() { return reader_.take_descriptor(); }
  /// The answer to the last command.
  void answer(decltype(Answer::what) what);
  /// The last command is answered later, by answer_deferred(), and others come before. One at a time.
  void defer() { deferred_ = working_on_.exchange(0); }
  void answer_deferred(decltype(Answer::what) what) { send({deferred_.exchange(0), std::move(what)}); }

 private:
  void send(const Answer& answer);
  void receive();
  void watch();

  using Clock = std::chrono::steady_clock;

  int socket_, stop_;
  bool has_core_, comes_soon_ = false, lone_ = false;
  Clock::time_point answered_;
  FrameReader reader_;
  std::atomic<std::uint64_t> working_on_ = 0;  ///< number of the command that is being carried out; 0: none
  std::atomic<std::uint64_t> deferred_ = 0;    ///< number of the one that is carried out in the background; 0: none
  std::mutex sending_;
  std::thread watcher_;  ///< last: it uses the others
};

}  // namespace shardmat::service
