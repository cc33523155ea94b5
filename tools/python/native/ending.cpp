// The end of the interpreter while daemon threads are in calls of the library. The function that atexit calls does this:
//
//   no new calls of other threads ─► wait for calls under way ─► give up waits for other ranks ─► wait again ─► leave the
//   rest
//
// Solves stop at their next look. So MPI is not finalized, and static objects are not destroyed, while a call uses them.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "handles.h"

namespace shardmat::python {
namespace {

struct Ending {
  std::atomic<bool> begun = false, left_behind = false;
  std::thread::id by;  ///< written before `begun`
  pid_t process = getpid();
  std::vector<std::weak_ptr<shardmat_context>> contexts;
};
/// Never deleted: threads may use it until the process is gone.
Ending& ending() {
  static auto* const made = new Ending;
  return *made;
}

/// Waits until no thread is in a call; false after `seconds`.
bool wait_for_calls(double seconds) {
  const auto start = std::chrono::steady_clock::now();
  while (threads_in_calls > 0) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void end() {
  Ending& of = ending();
  if (of.begun || of.process != getpid()) return;  // a child after fork() has none of these threads
  constexpr double kMeeting = 2, kLast = 20;       // seconds
  of.by = std::this_thread::get_id();
  of.begun = true;
  PyThreadState* const state = PyEval_SaveThread();
  if (!wait_for_calls(kMeeting)) {
    for (const auto& context : of.contexts)
      if (const auto one = context.lock()) shardmat_context_give_up(one.get());
    if (!wait_for_calls(kLast)) {
      // What they use must stay: handles are not destroyed, and the process ends before static objects are.
      of.left_behind = true;
      on_exit(
          [](int status, void*) {
            std::fflush(nullptr);
            _exit(status);
          },
          nullptr);
    }
  }
  PyEval_RestoreThread(state);
}

}  // namespace

bool ends_here() { return ending().begun && ending().by != std::this_thread::get_id(); }
bool left_calls_behind() { return ending().left_behind; }

void note_context(const std::shared_ptr<shardmat_context>& context) {
  auto& all = ending().contexts;
  all.erase(std::remove_if(all.begin(), all.end(), [](const auto& one) { return one.expired(); }), all.end());
  all.push_back(context);
}

void add_ending(py::module_& module) {
  ending();
  py::module_::import("atexit").attr("register")(py::cpp_function(&end, py::name("end_calls"), py::scope(module)));
}

}  // namespace shardmat::python
