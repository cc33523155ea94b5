#include "tests/runtime/contexts.h"

#include "comm/nccl/nccl_communicator.h"

#include <memory>
#include <string>

namespace shardmat {
namespace {

std::unique_ptr<Context>& context_slot(BackendChoice backend) {
  static std::unique_ptr<Context> host, cuda;
  return backend == BackendChoice::host ? host : cuda;
}

class EndContexts : public testing::Environment {
  void TearDown() override {
    for (const BackendChoice backend : {BackendChoice::host, BackendChoice::cuda}) context_slot(backend).reset();
  }
};
const auto* const kEndContexts = testing::AddGlobalTestEnvironment(new EndContexts);

}  // namespace

Context& context_of(const Case& c) {
  std::unique_ptr<Context>& slot = context_slot(c.backend);
  if (slot == nullptr) slot = std::make_unique<Context>(world(), c.backend);
  return *slot;
}

void on_gpus(void (*check)(const Case&), const Case& c) {
  if (const std::string why_not = why_no_gpus(); !why_not.empty()) GTEST_SKIP() << why_not;
  check(c);
}

void on_peers(void (*check)(const Case&), const Case& c) {
  if (world().size() == 1) GTEST_SKIP() << "needs several ranks";
  if (const std::string why_not = why_no_gpus(); !why_not.empty()) GTEST_SKIP() << why_not;
  if (const std::string why_not = context_of(c).nccl()->why_no_peer_access(); !why_not.empty()) GTEST_SKIP() << why_not;
  check(c);
}

}  // namespace shardmat
