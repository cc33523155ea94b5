// Out of memory on one rank in the middle of multigrid's set-up: all ranks get the error, and none waits.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "runtime/solvers/loop/preconditioner.h"
#include "tests/runtime/solvers/test_system.h"

namespace {

/// Smaller ones, as libraries make under way, are left alone.
constexpr std::size_t kLeastBytes = 256;
constexpr std::int64_t kNever = -1;

/// Allocations until one fails; kNever: none does. Others count on below it.
std::atomic<std::int64_t> left{kNever};

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (bytes >= kLeastBytes && left.load() != kNever && left.fetch_sub(1) == 0) throw std::bad_alloc();
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// std::stable_sort() goes on without.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace shardmat {
namespace {

using test::System;

constexpr std::int64_t kMany = std::int64_t{1} << 40;

/// Allocations of this rank in f, of which number `fails` fails.
template <class F>
std::int64_t allocations(std::int64_t fails, F&& f) {
  left = fails;
  try {
    f();
  } catch (...) {
    left = kNever;
    throw;
  }
  return fails - left.exchange(kNever);
}

struct Case {
  const char *specification, *near_null_space;
};

PreconditionerOptions options_of(const Case& c) {
  PreconditionerOptions options;
  options.multigrid.near_null_space = c.near_null_space;
  options.multigrid.coarse_size = 40;
  return options;
}

/// Each of these fails in another place. The last ones are left out, since times decide how many there are.
std::vector<std::int64_t> some_of(std::int64_t all) {
  std::vector<std::int64_t> some;
  for (std::int64_t k = 0; k < all - all / 10; k += 1 + all / 60) some.push_back(k);
  return some;
}

TEST(MultigridFailures, AllRanksEndWithTheErrorOfOne) {
  Communicator& ranks = world();
  for (const Case& c : {Case{"elasticity:n=6,clamp=0.1,uniform", "auto"}, Case{"elasticity:n=6,clamp=0.1", "adaptive"},
                        Case{"convection_diffusion:n=9,peclet=10", "auto"}}) {
    System system(kHost64, c.specification, 1);
    const PreconditionerOptions options = options_of(c);
    const PreconditionerEntry& multigrid = find_preconditioner("multigrid");
    const auto make = [&] { return multigrid.make(system.at.matrix, options); };
    make();
    const std::int64_t all = ranks.all_reduce(allocations(kMany, make), Reduction::min);
    ASSERT_GT(all, 100);
    for (const int failing : {0, ranks.size() - 1})
      for (const std::int64_t k : some_of(all)) {
        SCOPED_TRACE(std::string(c.specification) + ", allocation " + std::to_string(k) + " of rank " +
                     std::to_string(failing));
        const std::string message =
            error_of(ErrorKind::resources, [&] { allocations(ranks.rank() == failing ? k : kMany, make); });
        EXPECT_NE(message.find("out of host memory"), std::string::npos) << message;
        const std::string who = ranks.size() > 1 ? "rank " + std::to_string(failing) : "";
        EXPECT_NE(message.find(who), std::string::npos) << message;
        ASSERT_FALSE(testing::Test::HasFailure());
      }
    EXPECT_NE(make(), nullptr);  // the ranks still meet
  }
}

TEST(MultigridFailures, RefreshMayFollowOneThatFailed) {
  Communicator& ranks = world();
  const Case c{"elasticity:n=6,clamp=0.1,uniform", "auto"};
  System system(kHost64, c.specification, 1);
  const auto m = find_preconditioner("multigrid").make(system.at.matrix, options_of(c));
  const auto refresh = [&] { m->refresh(system.stream()); };
  const std::int64_t all = ranks.all_reduce(allocations(kMany, refresh), Reduction::min);
  for (const std::int64_t k : some_of(all)) {
    SCOPED_TRACE("allocation " + std::to_string(k));
    const bool fails = ranks.rank() == ranks.size() - 1;
    EXPECT_NE(error_of(ErrorKind::resources, [&] { allocations(fails ? k : kMany, refresh); }).find("out of host memory"),
              std::string::npos);
    ASSERT_FALSE(testing::Test::HasFailure());
    refresh();
  }
}

}  // namespace
}  // namespace shardmat
