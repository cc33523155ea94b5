#include "tools/cli/run_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "comm/mpi_session.h"
#include "kernels/base/core_wait.h"
#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/print_error.h"
#include "tools/cli/busy_note.h"
#include "tools/cli/environment.h"
#include "tools/cli/given_options.h"
#include "tools/cli/setting_options.h"

namespace shardmat::tools {
namespace {

constexpr double kCleanUpSeconds = 5;  // device memory cannot always be freed while a kernel waits for a lost rank
constexpr double kLeastToStart = 30;   // seconds that ranks may take to start where the deadline of other steps is shorter

/// For errors that the other ranks do not know of: says it and ends this process without waiting for anyone.
[[noreturn]] void leave(int exit_code, const std::string& message) {
  print_error("shardmat: {}\n", message);
  MpiSession::leave(exit_code);
}

std::string name_of(const Communicator& communicator) {
  return fmt::format("rank {} on {}", communicator.rank(), communicator.host());
}

/// Names the rank before a message, unless it does so itself.
std::string by(const Communicator& communicator, const std::string& message) {
  const bool named = message.starts_with(fmt::format("rank {} (", communicator.rank()));
  return named ? message : fmt::format("{}: {}", name_of(communicator), message);
}

/// True if the launcher started several processes, of which MPI knows this one alone.
bool is_singleton() {
  int ranks = 0;
  return launch().size > 1 && MPI_Comm_size(MPI_COMM_WORLD, &ranks) == MPI_SUCCESS && ranks == 1;
}

std::unique_ptr<Communicator> join(const CommandLine& command, double timeout_seconds, World world) {
  try {
    if (world == World::any && is_singleton()) return std::make_unique<Communicator>(Communicator::alone(timeout_seconds));
    return std::make_unique<Communicator>(MPI_COMM_WORLD, timeout_seconds);
  } catch (const Error& error) {
    leave(error.exit_code(), message_of(error, command));
  }
}

/// Threads that work together wait for each other at barriers, and spin there.
void note_busy_cores(const CoreWait& wait, const Communicator& communicator) {
  if (communicator.rank() != 0) return;
  const int threads = thread_count();
  print_error("{}", busy_note(wait.share(threads), wait.seconds(), threads, name_of(communicator)));
}

/// Ends this process with a message unless this object is gone in time: MPI's start and end wait for all ranks, and know no
/// deadline.
class Deadline {
 public:
  Deadline(double seconds, std::string message)
      : thread_([this, seconds, message = std::move(message)] {
          std::unique_lock lock(mutex_);
          if (!met_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return is_met_; }))
            leave(static_cast<int>(ErrorKind::rank_lost), message);
        }) {}
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      is_met_ = true;
    }
    met_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable met_;
  bool is_met_ = false;
  std::thread thread_;  ///< last: it uses the others
};

/// Sets the deadline as it goes: before MPI ends, whichever way the ranks' work did.
struct EndsInTime {
  std::optional<Deadline>& deadline;
  double seconds;
  std::string name;
  ~EndsInTime() {
    deadline.emplace(seconds, fmt::format("{}: ending MPI did not finish within {:g} s: a rank does not answer any more. "
                                          "What was done before is complete",
                                          name, seconds));
  }
};

}  // namespace

int run_ranks(const CommandLine& command, double timeout_seconds, const std::function<int(Communicator&)>& work,
              World world) {
  const double start_seconds = std::max(timeout_seconds, kLeastToStart);
  std::optional<Deadline> deadline(
      std::in_place, start_seconds,
      message_of(
          Error(
              ErrorKind::rank_lost,
              fmt::format(
                  "rank {}: starting MPI did not finish within {:g} s: a rank did not start, or does not answer. If all are "
                  "only slow, raise the timeout",
                  launch().rank, start_seconds),
              "timeout_seconds"),
          command));
  MpiSession session(nullptr, nullptr);
  if (world == World::of_launcher) require_world_of_launcher();
  const std::unique_ptr<Communicator> communicator = join(command, timeout_seconds, world);
  deadline.reset();
  const EndsInTime ends{deadline, timeout_seconds, name_of(*communicator)};
  communicator->watch_calls(timeout_seconds,
                            [&](const Error& why) { leave(why.exit_code(), by(*communicator, message_of(why, command))); });
  communicator->on_broken([&](const Error& why) {
    MpiSession::leave_after(kCleanUpSeconds, static_cast<int>(ErrorKind::rank_lost),
                            fmt::format("shardmat: {}", by(*communicator, message_of(why, command))));
  });
  try {
    require_same_on_all_ranks(*communicator, given_options(command));
    const CoreWait wait;
    const int exit_code = work(*communicator);
    note_busy_cores(wait, *communicator);
    communicator->barrier();  // has a deadline, the end of MPI has none
    return exit_code;
  } catch (const AgreedError& error) {
    if (communicator->rank() == 0) print_error("shardmat: {}\n", message_of(error, command));
    return error.exit_code();
  } catch (const Error& error) {
    leave(error.exit_code(), by(*communicator, message_of(error, command)));
  } catch (const std::bad_alloc&) {
    leave(static_cast<int>(ErrorKind::resources), by(*communicator, "not enough host memory; use more hosts"));
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0)  // which fmt::print throws
      leave(static_cast<int>(ErrorKind::resources), by(*communicator, "standard output could not be written"));
    leave(static_cast<int>(ErrorKind::internal), by(*communicator, fmt::format("internal error: {}", error.what())));
  }
}

}  // namespace shardmat::tools
