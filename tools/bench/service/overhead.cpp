// What a request of one client costs beyond its product, against a socket that sends the same bytes back.
#include <cstring>

#include "tools/bench/service/floor.h"
#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr double kEchoes = 1.3, kWakeUps = 2;
constexpr const char* kMatrix = "diagonals:n=10000,count=5,spacing=100";

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

}  // namespace

void run_overhead(const Setup& setup, Outcome& outcome) {
  Server server(setup.library.path(), setup.ranks_or(1));
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
  outcome.report("request beyond its own product", median(beyond), Unit::seconds);
  outcome.report("request", median(requests), Unit::seconds);
  outcome.report("bare product of the library", bare, Unit::seconds);
  outcome.report("socket that sends 80 kB back", echoed, Unit::seconds);
  outcome.report("wake-up of a process by a socket", wake_up, Unit::seconds);
  outcome.report("memcpy of 80 kB", copy_seconds(matrix.x_bytes()), Unit::seconds);
}

}  // namespace shardmat::tools::service_bench
