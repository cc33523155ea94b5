#include "tools/run_ranks.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "kernels/base/error.h"

namespace shardmat::tools {
namespace {

constexpr double kCleanUpSeconds = 5;  // device memory cannot always be freed while a kernel waits for a lost rank

/// For errors that the other ranks do not know of: says it and ends this process without waiting for anyone.
[[noreturn]] void leave(int exit_code, const std::string& message) {
  fmt::print(stderr, "shardmat: {}\n", message);
  MpiSession::leave(exit_code);
}

std::string name_of(const Communicator& communicator) {
  return fmt::format("rank {} on {}", communicator.rank(), communicator.host());
}

std::unique_ptr<Communicator> join(double timeout_seconds) {
  try {
    return std::make_unique<Communicator>(MPI_COMM_WORLD, timeout_seconds);
  } catch (const Error& error) {
    leave(error.exit_code(), error.what());
  }
}

}  // namespace

int run_ranks(double timeout_seconds, const std::function<int(Communicator&)>& work) {
  MpiSession session(nullptr, nullptr);
  const std::unique_ptr<Communicator> communicator = join(timeout_seconds);
  communicator->on_broken([&](const std::string& why) {
    MpiSession::leave_after(kCleanUpSeconds, static_cast<int>(ErrorKind::rank_lost),
                            fmt::format("shardmat: {}: {}", name_of(*communicator), why));
  });
  try {
    const int exit_code = work(*communicator);
    communicator->barrier();  // has a deadline, the end of MPI has none
    return exit_code;
  } catch (const AgreedError& error) {
    if (communicator->rank() == 0) fmt::print(stderr, "shardmat: {}\n", error.what());
    return error.exit_code();
  } catch (const Error& error) {
    leave(error.exit_code(), fmt::format("{}: {}", name_of(*communicator), error.what()));
  } catch (const std::bad_alloc&) {
    leave(static_cast<int>(ErrorKind::resources), name_of(*communicator) + ": not enough host memory; use more hosts");
  } catch (const std::exception& error) {
    leave(static_cast<int>(ErrorKind::internal),
          fmt::format("{}: internal error: {}", name_of(*communicator), error.what()));
  }
}

}  // namespace shardmat::tools
