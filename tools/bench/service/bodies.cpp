// How fast large vectors move, and how much memory they take.
#include <fmt/format.h>

#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "tools/bench/service/floor.h"
#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

/// A loaded matrix has X and Y of its widest product, 32 columns. A size is left out if there is less memory than so many
/// bodies.
constexpr std::int64_t kMemoryPerBody = 100;
constexpr double kMoreBytes = 16e6;

double least_share(std::int64_t bytes) { return bytes < 4'000'000 ? 0.90 : 0.75; }

void run_with(std::int64_t n, int runs, const Setup& setup, Outcome& outcome) {
  const std::string arena = std::to_string(40 * n + (1 << 20));
  Server server(setup.library, setup.ranks_or(1), {"--arena", arena});
  const Resident matrix = server.load("m", setup.library.add(fmt::format("diagonals:n={},count=1,spacing=1", n)));
  const Totals before = server.totals();
  const Products products = make_products(server, matrix, 1, 1);
  const Request& request = products.requests[0];
  Connection connection(server.socket());
  Echo echo(request.head.size() + request.body.size());
  std::vector<double> moves, echoes, ratios;
  for (int run = 0; run <= runs; ++run) {
    const double began = now();
    const Reply reply = connection.ask(request);
    const double whole = now() - began;
    outcome.count(reply.status, reply.status == 200 && is_right(request, reply));
    const double echoed = echo.seconds(request.head.size() + request.body.size());
    if (run == 0) continue;  // touches pages
    moves.push_back(whole - reply.seconds_of("copy-in") - reply.seconds_of("product") - reply.seconds_of("copy-out"));
    echoes.push_back(echoed);
    ratios.push_back(echoed / moves.back());
  }
  const auto bytes = static_cast<std::int64_t>(matrix.x_bytes());
  const std::string body = human_bytes(static_cast<double>(bytes));
  outcome.at_least(fmt::format("{} body: speed of a socket that was reached", body), median(ratios), least_share(bytes),
                   Unit::ratio);
  outcome.report(fmt::format("{} body: moved there and back", body), 2 * static_cast<double>(bytes) / median(moves),
                 Unit::bytes_per_second);
  outcome.at_most(fmt::format("{} body: memory beyond the loaded matrix", body),
                  static_cast<double>(server.totals().bytes - before.bytes),
                  static_cast<double>(matrix.x_bytes() + matrix.y_bytes()) + kMoreBytes, Unit::bytes);
}

}  // namespace

void run_bodies(const Setup& setup, Outcome& outcome) {
  struct Size {
    std::int64_t n;
    int runs, small_runs;
  };
  for (const Size size : {Size{100'000, 400, 20}, {1'000'000, 100, 3}, {10'000'000, 15, 0}, {100'000'000, 3, 0}}) {
    const int runs = setup.by_size(size.runs, size.small_runs);
    const std::int64_t body = size.n * static_cast<std::int64_t>(sizeof(double));
    if (runs == 0) continue;
    if (available_on_host() >= kMemoryPerBody * body) {
      run_with(size.n, runs, setup, outcome);
    } else {
      outcome.note(fmt::format("{} bodies were left out: they need {} of memory for products of 32 columns",
                               human_bytes(static_cast<double>(body)),
                               human_bytes(static_cast<double>(kMemoryPerBody * body))));
    }
  }
}

}  // namespace shardmat::tools::service_bench
