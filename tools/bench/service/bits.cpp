// Random requests of many clients for several matrices: every answer has the bits of a product alone.
#include <fmt/format.h>

#include <random>

#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

struct Case {
  const char *full, *small, *type;
};
constexpr Case kCases[] = {{"elasticity:n=12", "elasticity:n=5", "f64"},
                           {"poisson27:n=24", "poisson27:n=8", "f64"},
                           {"rmat:scale=12", "rmat:scale=7", "f32"}};
constexpr std::int64_t kVectors = 64;
constexpr int kClients = 32;

}  // namespace

void run_bits(const Setup& setup, Outcome& outcome) {
  Server server(setup.library, setup.ranks_or(2));
  std::vector<HostVector<std::byte>> vectors;  // X and Y of each matrix
  vectors.reserve(2 * std::size(kCases));
  std::vector<Request> requests;
  for (const Case& one : kCases) {
    const std::string name = fmt::format("m{}", vectors.size());
    const Resident matrix = server.load(name, setup.library.add(setup.small ? one.small : one.full), one.type);
    const auto& x = vectors.emplace_back(random_vectors(matrix, kVectors, vectors.size() + 1));
    const auto& y = vectors.emplace_back(expected_products(setup.library, server, matrix, x));
    const std::int64_t widest = matrix.table().widest();
    for (std::int64_t first = 0; first < kVectors; ++first)
      for (const std::int64_t columns : {1, 1, 3, 8}) {
        if (columns > widest || first + columns > kVectors) continue;
        const auto at = static_cast<std::size_t>(first), count = static_cast<std::size_t>(columns);
        Request request =
            multiply_request(name, std::span(x).subspan(at * matrix.x_bytes(), count * matrix.x_bytes()), columns);
        request.expected = std::span(y).subspan(at * matrix.y_bytes(), count * matrix.y_bytes());
        requests.push_back(std::move(request));
      }
  }
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::size_t> any(0, requests.size() - 1);
  LoadOptions load{server.socket(), requests};
  load.pick = [&](std::int64_t) { return any(random); };
  load.connections = kClients;
  load.most = setup.by_size(10'000, 500);
  const LoadResult result = run_load(load);
  outcome.count(result);
  std::int64_t merged = 0;
  for (const Sample& sample : result.samples) merged += sample.columns > 8 ? 1 : 0;
  outcome.at_most(setup.library.on_gpus() ? "answers with other bits than a product alone"
                                          : "answers with other bits than the library's product",
                  static_cast<double>(result.wrong), 0, Unit::count);
  outcome.report("requests", static_cast<double>(result.samples.size()), Unit::count);
  outcome.report("answers of merged products", static_cast<double>(merged), Unit::count);
}

}  // namespace shardmat::tools::service_bench
