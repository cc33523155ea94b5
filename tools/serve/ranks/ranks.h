// The ranks as the front end sees them: starts them, sends them commands, collects their answers, and notices at once when
// one is lost. It restarts nothing itself.
//
// Threads: the thread of the event loop. Actions are called on it, never from inside a call of this class.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/base/parallel.h"
#include "runtime/service/wire/arena.h"
#include "runtime/service/wire/command.h"
#include "runtime/service/wire/frames.h"
#include "tools/serve/http/event_loop.h"
#include "tools/serve/ranks/child_process.h"
#include "tools/serve/ranks/network_door.h"
#include "tools/serve/ranks/worker_log.h"

namespace shardmat::serve {

struct RankOptions {
  std::vector<std::string> launcher;  ///< starts all ranks: "mpirun", "-n", "2"
  std::vector<std::string> worker;    ///< the program of a rank with its options; the control socket is added
  double timeout = 5;                 ///< seconds without a sign of life after which a rank is lost
  std::filesystem::path log;          ///< takes what the ranks print
};

/// Which rank was lost, if it is known, and why.
struct RankLoss {
  int rank = -1;
  std::string why;
  std::string host = {};
  std::optional<ProcessEnd> end = {};  ///< how its process ended, if that is known
};

class Ranks {
 public:
  struct Actions {
    std::function<void()> ready;                ///< all ranks are there
    std::function<void(const RankLoss&)> lost;  ///< no command will be answered any more
    std::function<void()> gone;                 ///< all processes have ended, after kill() or quit()
  };
  /// Called with the answers of all ranks, by rank.
  using Answered = std::function<void(const std::vector<service::Answer>&)>;

  Ranks(EventLoop& loop, RankOptions options, const service::Arena& arena, Actions actions);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// Starts the processes; their socket is made in `run_directory`. Throws Error(resources) if they cannot be started.
  void start(const std::filesystem::path& run_directory);
  /// Sends a command to all ranks, with a descriptor unless it is negative. A rank that does not answer within twenty times
  /// `expected_seconds`, but not less than two seconds, and the timeout is lost; of a command without an expectation (0) it
  /// is enough that the rank is alive. REQUIRES: the ranks are ready.
  void send(decltype(service::Command::what) what, double expected_seconds, Answered answered, int descriptor = -1);
  /// The event loop does not sleep until the answer to a command that takes so long comes, if that is less than a thread
  /// takes to wake up and there is a core more than ranks.
  void await_without_sleep(double expected_seconds);
  /// Ends all processes: their sockets are closed, then they get SIGTERM, and after two seconds SIGKILL. Nothing is answered
  /// any more.
  void kill();
  /// Tells all ranks to end; those that do not within two seconds are killed. REQUIRES: the ranks are ready and idle.
  void quit();

  /// The ranks that have connected, by rank.
  std::vector<service::Hello> hellos() const;
  /// The processes of those on this host.
  std::set<int> processes() const;
  bool ready() const { return state_ == State::ready; }
  /// True if the ranks carry out other commands while they load a matrix.
  bool load_in_background() const;
  /// The rank that a signal ended since the last start, if the launcher said so.
  const std::optional<SignalledRank>& signalled() const { return log_.signalled(); }
  /// Lines of the ranks that were not written to their log.
  std::uint64_t lost_log_lines() const { return log_.lost_lines(); }

 private:
  enum class State { stopped, starting, ready, lost, ending };
  struct Rank;
  struct Outstanding {
    std::uint64_t number = 0;
    double sent = 0, expected = 0;
    bool is_ping = false;
    std::vector<service::Answer> answers;
    std::size_t answered = 0;
    Answered done;
  };

  void listen(const std::filesystem::path& path);
  void accept();
  void connect(int socket, pid_t process);
  void receive(Rank& rank);
  void explain_end(Rank& rank, double until);
  bool is_ours(const service::Answer& answer) const;
  void take(Rank& rank, const service::Answer& answer);
  void introduce(Rank& rank, const service::Hello& hello);
  void lose(RankLoss loss);
  void check();
  bool is_late(const Rank& rank, const Outstanding& command, double time);
  void check_ended();
  void close_sockets();
  std::string last_line();

  EventLoop& loop_;
  RankOptions options_;
  const service::Arena& arena_;
  Actions actions_;
  WorkerLog log_;
  State state_ = State::stopped;
  std::vector<std::unique_ptr<Rank>> connected_;  ///< in the order of connection
  std::vector<Rank*> ranks_;                      ///< by rank, once all are there
  const int cores_ = usable_cores();
  std::deque<Outstanding> outstanding_;
  std::uint64_t last_number_ = 0;
  std::size_t expected_ranks_ = 0;
  double started_ = 0;
  int listener_ = -1;
  std::unique_ptr<NetworkDoor> door_;  ///< while ranks of other hosts are expected
  std::unique_ptr<ReadWatch> listener_watch_, launcher_watch_;
  pid_t launcher_ = 0;
  ProcessHandle launcher_handle_;
  std::vector<ProcessHandle> workers_;  ///< of all ranks that ever connected since the start
  double ending_since_ = 0;
  bool hard_ = false;      ///< SIGKILL was sent
  Rank* ended_ = nullptr;  ///< a rank that has ended; how is being found out
  Alarm checks_, end_checks_, explains_;
};

/// Seconds of a clock that never goes back.
double now();

}  // namespace shardmat::serve
