#include "runtime/service/engine/background_load.h"

#include <fmt/format.h>
#include <sched.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "comm/mpi_session.h"
#include "kernels/base/error.h"
#include "runtime/context/context_scope.h"

namespace shardmat::service {
namespace {

/// Such a thread never takes a core from one that has just become busy, as the engine does when a command comes.
void let_others_go_first() {
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);
}

/// For an error of this rank alone: the front end loads the matrix again on new ranks.
[[noreturn]] void leave(const Communicator& ranks, int exit_code, const std::string& message) {
  std::fputs(fmt::format("shardmat: rank {} on {}: {}\n", ranks.rank(), ranks.host(), message).c_str(), stderr);
  MpiSession::leave(exit_code);
}

}  // namespace

bool BackgroundLoad::is_possible(const Context& context) {
  return context.device().backend == Backend::host && mpi_takes_threads();
}

BackgroundLoad::BackgroundLoad(const Context& engine, Make make, std::function<void(decltype(Answer::what))> done)
    : make_(std::move(make)), done_(std::move(done)) {
  Communicator& ranks = engine.communicator();
  made_.ranks = std::make_unique<Communicator>(ranks.duplicate(ranks.timeout_seconds()));
  made_.context = std::make_unique<Context>(*made_.ranks, engine);
  thread_ = std::jthread([this] { run(); });
}

OnRanks BackgroundLoad::take() {
  if (thread_.joinable()) thread_.join();
  return std::move(made_);
}

void BackgroundLoad::run() noexcept {
  let_others_go_first();
  decltype(Answer::what) answer = Done{};
  try {
    const ContextScope scope(*made_.context);
    made_.matrix = make_(*made_.context);
  } catch (const AgreedError& error) {
    answer = Failed{error.kind(), error.what(), error.missing_bytes()};
  } catch (const Error& error) {
    leave(*made_.ranks, error.exit_code(), error.what());
  } catch (const std::bad_alloc&) {
    leave(*made_.ranks, static_cast<int>(ErrorKind::resources), "not enough host memory; use more hosts");
  } catch (const std::exception& error) {
    leave(*made_.ranks, static_cast<int>(ErrorKind::internal), fmt::format("internal error: {}", error.what()));
  }
  done_(std::move(answer));
}

}  // namespace shardmat::service
