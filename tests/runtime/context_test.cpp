// What distributed operations run in, and the settings of the caller around them.
#include "runtime/context/context.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

#include "kernels/base/parallel.h"
#include "runtime/context/context_scope.h"
#include "runtime/matrix/load_part.h"
#include "runtime/source/matrix_source.h"
#include "tests/runtime/contexts.h"
#include "tests/runtime/matrix/test_matrix.h"

namespace shardmat {
namespace {

/// OMP_NUM_THREADS with another value, or without one, while in scope.
class OpenMpVariable {
 public:
  explicit OpenMpVariable(const char* value) {
    if (const char* old = std::getenv(kName); old != nullptr) old_ = old;
    set(value);
  }
  ~OpenMpVariable() { set(old_ ? old_->c_str() : nullptr); }
  OpenMpVariable(const OpenMpVariable&) = delete;
  OpenMpVariable& operator=(const OpenMpVariable&) = delete;

 private:
  static constexpr const char* kName = "OMP_NUM_THREADS";
  static void set(const char* value) { value == nullptr ? ::unsetenv(kName) : ::setenv(kName, value, 1); }
  std::optional<std::string> old_;
};

void has_a_device_and_streams(const Case& c) {
  Context& context = context_of(c);
  EXPECT_EQ(context.device().backend, c.backend == BackendChoice::cuda ? Backend::cuda : Backend::host);
  EXPECT_TRUE(context.stream().device() == context.device());
  EXPECT_TRUE(context.exchange_stream().device() == context.device());
  EXPECT_EQ(context.nccl() != nullptr, c.backend == BackendChoice::cuda && world().size() > 1);
  EXPECT_EQ(static_cast<int>(context.placement().ranks.size()), world().size());
}

/// Only the last rank makes it and multiplies; the other ranks take no part.
void works_for_one_rank(const Case& c) {
  Context& context = context_of(c);
  if (world().rank() == world().size() - 1) {
    Communicator self(MPI_COMM_SELF);
    Context alone(self, context);
    EXPECT_EQ(&alone.communicator(), &self);
    EXPECT_TRUE(alone.device() == context.device());
    EXPECT_EQ(alone.threads(), context.threads());
    EXPECT_EQ(alone.nccl(), nullptr);
    ASSERT_EQ(alone.placement().ranks.size(), 1U);
    EXPECT_EQ(alone.placement().ranks[0].host, context.placement().ranks.back().host);
    EXPECT_EQ(alone.placement().ranks[0].uuid, context.placement().ranks.back().uuid);
    const std::string specification = "elasticity:n=4";
    DistributedMatrix matrix(open_matrix(specification, self), alone, {});
    const auto product = matrix.product();
    test::expect_product(*product, test::whole_matrix(specification), test::multiply_once(*product, alone.stream()));
  }
  world().barrier();
}

TEST(Context, HasADeviceAndStreams) { has_a_device_and_streams(kHost64); }
TEST(GpuContext, HasADeviceAndStreams) { on_gpus(has_a_device_and_streams, kCuda64); }
TEST(MultiGpuContext, HasADeviceAndStreams) { on_gpus(has_a_device_and_streams, kCuda64); }
TEST(Context, WorksForOneRank) { works_for_one_rank(kHost64); }
TEST(GpuContext, WorksForOneRank) { on_gpus(works_for_one_rank, kCuda64); }
TEST(MultiGpuContext, WorksForOneRank) { on_gpus(works_for_one_rank, kCuda64); }

TEST(Context, TakesThreadsAsGivenElseOfOpenMpElseItsShare) {
  const auto threads = [](int given) { return Context(world(), BackendChoice::host, given).threads(); };
  const int share = share_cores(world()).threads, of_openmp = omp_get_max_threads(), of_caller = thread_count();
  omp_set_num_threads(share + 4);
  {
    const OpenMpVariable none(nullptr);
    EXPECT_EQ(threads(0), share);
    EXPECT_EQ(threads(share + 2), share + 2);
  }
  {
    const OpenMpVariable given("1");  // its value was read when the program began
    EXPECT_EQ(threads(0), share + 4);
    EXPECT_EQ(threads(share + 2), share + 2);
  }
  EXPECT_EQ(omp_get_max_threads(), share + 4) << "the settings of OpenMP belong to the program";
  EXPECT_EQ(thread_count(), of_caller);
  omp_set_num_threads(of_openmp);
}

TEST(ContextScope, RestoresTheThreadsOfTheCaller) {
  Context three(world(), BackendChoice::host, 3), five(world(), BackendChoice::host, 5);
  const ThreadCount two(2);
  {
    const ContextScope outer(three);
    EXPECT_EQ(thread_count(), 3);
    {
      const ContextScope inner(five);
      EXPECT_EQ(thread_count(), 5);
    }
    EXPECT_EQ(thread_count(), 3);
  }
  EXPECT_EQ(thread_count(), 2);
}

TEST(ContextScope, RestoresThemWhenAnExceptionPasses) {
  Context three(world(), BackendChoice::host, 3);
  const ThreadCount two(2);
  int inside = 0;
  EXPECT_THROW(
      {
        const ContextScope scope(three);
        inside = thread_count();
        throw std::runtime_error("passes");
      },
      std::runtime_error);
  EXPECT_EQ(inside, 3);
  EXPECT_EQ(thread_count(), 2);
  // The same of a public call that fails.
  PartOptions wrong;
  wrong.method = "none";
  const MatrixSource source = open_matrix("banded:n=20", world());
  EXPECT_NE(error_of(ErrorKind::usage, [&] { load_part(source, three, wrong); }).find("'none'"), std::string::npos);
  EXPECT_EQ(thread_count(), 2);
}

}  // namespace
}  // namespace shardmat
