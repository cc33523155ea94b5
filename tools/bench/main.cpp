// shardmat-bench: the benchmarks. `shardmat bench …` becomes this program and hands its command line over, so that both
// parse the same words. `shardmat-bench …` is the same without the word bench.
#include <filesystem>
#include <utility>
#include <vector>

#include "tools/bench/bench.h"
#include "tools/cli/command.h"
#include "tools/cli/other_programs.h"
#include "tools/cli/program.h"

namespace shardmat::tools {
namespace {

constexpr Benchmark kBenchmarks[] = {add_bench_kernels, add_bench_spmm,       add_bench_batched, add_bench_features,
                                     add_bench_scaling, add_bench_papers,     add_bench_io,      add_bench_service,
                                     add_bench_solve,   add_bench_shared_gpu, add_bench_factors};

std::function<int()> add_benchmarks(const CommandLine& program) {
  const CommandLine app = program.add_subcommand("bench", kBenchHelp);
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

}  // namespace
}  // namespace shardmat::tools

int main(int argc, char** argv) {
  using namespace shardmat::tools;
  constexpr AddCommand kCommands[] = {add_benchmarks, add_help};
  std::vector<char*> words(argv, argv + argc);
  std::string bench = "bench";
  if (argc > 0 && std::filesystem::path(argv[0]).filename() == "shardmat-bench")
    words.insert(words.begin() + 1, bench.data());
  words.push_back(nullptr);
  return run_program(static_cast<int>(words.size()) - 1, words.data(), kCommands);
}
