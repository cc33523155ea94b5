// What a request of one client costs beyond its product, against a socket that sends the same bytes back.
#include <cstring>

#include "tools/bench/service/floor.h"
#include "tools/bench/service/own_memory.h"
#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr double kEchoes = 1.3, kWakeUps = 2;
constexpr double kOwnMemorySeconds = 20e-6;  ///< that a request with memory of its own may take beyond the wake-ups
constexpr const char* kMatrix = "diagonals:n=10000,count=5,spacing=100";
constexpr const char* kLongMatrix = "diagonals:n=1000000,count=5,spacing=100";

double copy_seconds(std::size_t bytes) {
  HostVector<std::byte> from(bytes, std::byte{1}), to(bytes, std::byte{2});
  std::vector<double> times;
  for (int run = 0; run < 51; ++run) {
    const double began = now();
    std::memcpy(to.data(), from.data(), bytes);
    times.push_back(now() - began);
    from[0] = to[bytes - 1];
  }
  return median(times);
}

/// Median seconds of a request whose x and y are in the client's own memory. Each y is compared with that of a body.
double own_memory_seconds(const Server& server, const Resident& matrix, const Products& products, int runs,
                          Outcome& outcome) {
  const std::size_t x_bytes = matrix.x_bytes(), y_bytes = matrix.y_bytes(), y_at = (x_bytes + 63) / 64 * 64;
  Connection connection(server.socket());
  const OwnMemory memory(connection, y_at + y_bytes);
  const Request request = own_memory_request(matrix.name, 0, y_at);
  const auto x = memory.bytes().first(x_bytes), y = memory.bytes().subspan(y_at);
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    const Request& sent = products.requests[static_cast<std::size_t>(run) % products.requests.size()];
    std::memcpy(x.data(), sent.body.data(), x_bytes);
    std::memset(y.data(), 0, y_bytes);
    const double began = now();
    const Reply reply = connection.ask(request);
    times.push_back(now() - began);
    outcome.count(reply.status, reply.status == 204 && std::memcmp(y.data(), sent.expected.data(), y_bytes) == 0);
  }
  return median(times);
}

/// The same for vectors of 8 MB.
void report_long_vectors(const Setup& setup, Server& server, double target, Outcome& outcome) {
  constexpr int kRuns = 200;
  const Resident matrix = server.load("long", setup.library.add(kLongMatrix));
  const Products products = make_products(server, matrix, 2, 2);
  const double bare = bare_product_seconds(setup.library, matrix, server.ranks(), kRuns);
  const double own = own_memory_seconds(server, matrix, products, kRuns, outcome);
  outcome.at_most("8 MB in own memory beyond the bare product, median", own - bare, target, Unit::seconds);
  outcome.report("8 MB in own memory", own, Unit::seconds);
}

}  // namespace

void run_overhead(const Setup& setup, Outcome& outcome) {
  Server server(setup.library, setup.ranks_or(1));
  const Resident matrix = server.load("m", setup.library.add(kMatrix));
  const Products products = make_products(server, matrix, 4, 4);
  const double bare = bare_product_seconds(setup.library, matrix, server.ranks(), setup.by_size(2000, 50));
  Connection connection(server.socket());
  Echo echo(products.requests[0].head.size() + matrix.x_bytes());
  std::vector<double> requests, echoes, beyond;
  for (int run = 0; run < setup.by_size(4000, 100); ++run) {
    const Request& request = products.requests[static_cast<std::size_t>(run) % products.requests.size()];
    const double began = now();
    const Reply reply = connection.ask(request);
    requests.push_back(now() - began);
    beyond.push_back(requests.back() - reply.seconds_of("product"));
    outcome.count(reply.status, reply.status == 200 && is_right(request, reply));
    echoes.push_back(echo.seconds(request.head.size() + request.body.size()));
  }
  const double wake_up = wake_up_seconds(setup.by_size(2000, 100)), echoed = median(echoes);
  outcome.at_most("request beyond the bare product, median", median(requests) - bare, kEchoes * echoed + kWakeUps * wake_up,
                  Unit::seconds);
  const double own = own_memory_seconds(server, matrix, products, setup.by_size(4000, 100), outcome);
  const double own_target = kWakeUps * wake_up + kOwnMemorySeconds;
  outcome.at_most("request with own memory beyond the bare product, median", own - bare, own_target, Unit::seconds);
  outcome.report("request with own memory", own, Unit::seconds);
  if (!setup.small) report_long_vectors(setup, server, own_target, outcome);
  outcome.report("request beyond its own product", median(beyond), Unit::seconds);
  outcome.report("request", median(requests), Unit::seconds);
  outcome.report("bare product of the library", bare, Unit::seconds);
  outcome.report("socket that sends 80 kB back", echoed, Unit::seconds);
  outcome.report("wake-up of a process by a socket", wake_up, Unit::seconds);
  outcome.report("memcpy of 80 kB", copy_seconds(matrix.x_bytes()), Unit::seconds);
}

}  // namespace shardmat::tools::service_bench
