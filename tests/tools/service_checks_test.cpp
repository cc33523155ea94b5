// By what the service's benchmark knows that an answer is right.
#include "tools/bench/service/checks.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/base/error.h"

namespace shardmat::tools::service_bench {
namespace {

std::span<const std::byte> bytes_of(const std::vector<double>& numbers) { return std::as_bytes(std::span(numbers)); }

Reply reply_with(int status, std::span<const std::byte> body) {
  Reply reply;
  reply.status = status, reply.body = body;
  return reply;
}

TEST(ServiceChecks, SolvesAreJudgedByTheirX) {
  const Truth truth("poisson7:n=1");  // one row: 6 · x = b
  ASSERT_EQ(truth.rows(), 1);
  const double entry = truth.values()[0];
  const std::vector<double> b{3}, x{3 / entry}, wrong{1.001 * x[0]}, longer{x[0], 0};
  const Request request = solve_request("/v1/matrices/m/solve", bytes_of(b), truth, 1e-8);
  EXPECT_TRUE(is_right(request, reply_with(200, bytes_of(x))));
  EXPECT_FALSE(is_right(request, reply_with(200, bytes_of(wrong))));
  EXPECT_FALSE(is_right(request, reply_with(200, bytes_of(longer))));
  EXPECT_FALSE(is_right(request, reply_with(200, {})));
  EXPECT_TRUE(is_right(request, reply_with(503, {})));  // a refusal is no x
}

}  // namespace
}  // namespace shardmat::tools::service_bench
