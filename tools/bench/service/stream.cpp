// Vectors that move to the ranks and back with every product, in memory that each client shares with them: how near that
// comes to the bus.
#include <cstring>
#include <memory>

#include "kernels/base/device.h"
#include "tools/bench/service/own_memory.h"
#include "tools/bench/service/scenario.h"

namespace shardmat::tools::service_bench {
namespace {

constexpr int kClients = 32;
constexpr double kLeastShare = 0.85;

/// Seconds of x to the GPU and then y back, from and to page-locked memory, median.
double copy_seconds(std::size_t x_bytes, std::size_t y_bytes) {
  const Device device{Backend::cuda, 0};
  Stream stream(device);
  HostBuffer host;
  host.reserve(x_bytes + y_bytes, device, true);
  std::memset(host.data(), 1, x_bytes + y_bytes);
  const Buffer x(device, x_bytes), y(device, y_bytes);
  fill_bytes(y.data(), 2, y_bytes, stream);
  std::vector<double> times;
  for (int run = 0; run < 51; ++run) {
    stream.synchronize();
    const double began = now();
    copy_to_device_async(x.data(), host.data(), x_bytes, stream);
    copy_to_host_async(host.as<std::byte>() + x_bytes, y.data(), y_bytes, stream);
    stream.synchronize();
    times.push_back(now() - began);
  }
  return median(times);
}

}  // namespace

void run_stream(const Setup& setup, Outcome& outcome) {
  const bool on_gpus = setup.library.on_gpus();
  const char* const usual = on_gpus ? "poisson27:n=128" : "poisson27:n=96";
  Server server(setup.library, setup.ranks_or(1));
  const Resident matrix = server.load("m", setup.library.add(setup.matrix_or(usual, "elasticity:n=8")));
  const Products products = make_products(server, matrix, kClients, kClients);
  const std::size_t x_bytes = matrix.x_bytes(), y_bytes = matrix.y_bytes(), y_at = (x_bytes + 63) / 64 * 64;
  const Request request = own_memory_request(matrix.name, 0, y_at);
  std::vector<std::unique_ptr<OwnMemory>> memories;
  LoadOptions load{server.socket(), std::span(&request, 1)};
  load.connections = kClients;
  load.seconds = setup.by_size(5.0, 0.3);
  load.prepare = [&](Connection& connection) {
    const Request& sent = products.requests[memories.size()];
    memories.push_back(std::make_unique<OwnMemory>(connection, y_at + y_bytes));
    std::memcpy(memories.back()->bytes().data(), sent.body.data(), x_bytes);
  };
  const LoadResult result = run_load(load);
  outcome.count(result);
  for (std::size_t i = 0; i < memories.size(); ++i)
    outcome.count(204, std::memcmp(memories[i]->bytes().data() + y_at, products.y[i].data(), y_bytes) == 0);
  const double rate = result.rate(0.2 * load.seconds, load.seconds);
  const auto ranks = static_cast<std::size_t>(server.ranks());  // each copies its part, at the same time
  if (on_gpus)
    outcome.at_least("share of the rate at which x and y alone could be copied",
                     rate * copy_seconds(x_bytes / ranks, y_bytes / ranks), kLeastShare, Unit::ratio);
  outcome.report("products a second", rate, Unit::per_second);
  outcome.report("bytes of x and y", rate * static_cast<double>(x_bytes + y_bytes), Unit::bytes_per_second);
  outcome.report("share of the products alone", rate / matrix.most_per_second(), Unit::ratio);
}

}  // namespace shardmat::tools::service_bench
