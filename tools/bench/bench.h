// The benchmarks of `shardmat bench`: one file each and one line in the list of main.cpp.
#pragma once

#include <functional>

#include "tools/cli/options.h"

namespace shardmat::tools {

/// Adds a benchmark with its options; the function it returns runs it and returns the exit code.
using Benchmark = std::function<int()> (*)(const CommandLine& bench);

std::function<int()> add_bench_batched(const CommandLine& bench);
std::function<int()> add_bench_shared_gpu(const CommandLine& bench);
std::function<int()> add_bench_factors(const CommandLine& bench);
std::function<int()> add_bench_features(const CommandLine& bench);
std::function<int()> add_bench_io(const CommandLine& bench);
std::function<int()> add_bench_kernels(const CommandLine& bench);
std::function<int()> add_bench_papers(const CommandLine& bench);
std::function<int()> add_bench_scaling(const CommandLine& bench);
std::function<int()> add_bench_service(const CommandLine& bench);
std::function<int()> add_bench_solve(const CommandLine& bench);
std::function<int()> add_bench_spmm(const CommandLine& bench);

}  // namespace shardmat::tools
