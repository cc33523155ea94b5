#include <utility>
#include <vector>

#include "tools/bench/bench.h"
#include "tools/cli/command.h"

namespace shardmat::tools {
namespace {

constexpr Benchmark kBenchmarks[] = {add_bench_kernels, add_bench_spmm,    add_bench_batched, add_bench_features,
                                     add_bench_scaling, add_bench_papers,  add_bench_io,      add_bench_service,
                                     add_bench_solve,   add_bench_feeders, add_bench_slices};

}  // namespace

std::function<int()> add_bench(const CommandLine& program) {
  const CommandLine app = program.add_subcommand(
      "bench", "Benchmarks of kernels, batches, scaling, solvers, files, the service; results in tools/bench/README.md");
  app.require_subcommand();
  app.footer("Examples:\n  shardmat bench kernels --help\n  shardmat bench kernels --size tiny --backend host\n");
  std::vector<std::pair<CommandLine, std::function<int()>>> all;
  for (const Benchmark add : kBenchmarks) {
    auto run = add(app);
    all.emplace_back(app.subcommands().back(), std::move(run));
  }
  return [all] {
    for (const auto& [benchmark, run] : all)
      if (benchmark.parsed()) return run();
    return 0;
  };
}

}  // namespace shardmat::tools
