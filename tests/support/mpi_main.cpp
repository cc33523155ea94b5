// Runs GoogleTest on every rank: rank 0 prints what passes, any rank prints what fails, and the exit code is
// agreed.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/mpi_session.h"
#include "comm/placement.h"
#include "kernels/base/parallel.h"
#include "tests/support/pretended_hosts.h"
#include "tests/support/world.h"

namespace shardmat {
namespace {

std::unique_ptr<Communicator>& world_slot() {
  static std::unique_ptr<Communicator> slot;
  return slot;
}

/// Prints the failures of ranks that are otherwise silent.
class FailurePrinter : public testing::EmptyTestEventListener {
  // Asking GoogleTest for the running test from within OnTestPartResult would wait for its own lock.
  void OnTestStart(const testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + "." + test.name();
  }
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s: %s:%d: %s\n", world().rank(), test_.c_str(),
                 result.file_name() == nullptr ? "" : result.file_name(), result.line_number(), result.message());
  }
  std::string test_;
};

}  // namespace

Communicator& world() { return *world_slot(); }

std::string why_no_gpus() {
  try {
    place_ranks(world(), BackendChoice::cuda);
    return {};
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::resources || hosts_are_pretended()) throw;
    return e.what();
  }
}

namespace {

int run(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  pretend_hosts();
  world_slot() = std::make_unique<Communicator>(MPI_COMM_WORLD, 60);
  const ThreadCount threads(threads_of_environment(share_cores(world()).threads));
  testing::InitGoogleTest(&argc, argv);
  if (world().rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter);
  }
  const int mine = RUN_ALL_TESTS();
  if (world().broken()) MpiSession::leave(1);
  const int all = world().all_reduce(mine, Reduction::max);
  world_slot().reset();
  return all;
}

}  // namespace
}  // namespace shardmat

int main(int argc, char** argv) { return shardmat::run(argc, argv); }
