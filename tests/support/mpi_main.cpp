// Runs GoogleTest on every rank: rank 0 prints what passes, any rank prints what fails, and the exit code is
// agreed. SHARDMAT_TEST_HOSTS_OF=2 in the environment makes hosts of two ranks each out of this one, as far as ranks and
// NCCL see: they share its GPUs, reach each other directly within such a host, and through sockets between them.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/placement.h"
#include "tests/support/world.h"

namespace {

/// Of this rank, if it is to have one of its own.
std::string& pretended_host() {
  static std::string name;
  return name;
}

void pretend_hosts() {
  const char* asked = std::getenv("SHARDMAT_TEST_HOSTS_OF");
  if (asked == nullptr) return;
  const int ranks_a_host = std::atoi(asked);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  pretended_host() = "host" + std::to_string(rank / ranks_a_host);
  setenv("NCCL_HOSTID", pretended_host().c_str(), 1);
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(rank % ranks_a_host).c_str(), 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", asked, 1);
}

}  // namespace

/// In place of MPI's, which it calls.
extern "C" int MPI_Get_processor_name(char* name, int* length) {
  if (pretended_host().empty()) return PMPI_Get_processor_name(name, length);
  *length = std::snprintf(name, MPI_MAX_PROCESSOR_NAME, "%s", pretended_host().c_str());
  return MPI_SUCCESS;
}

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
    return e.what();
  }
}

namespace {

int run(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  pretend_hosts();
  world_slot() = std::make_unique<Communicator>(MPI_COMM_WORLD, 60);
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
