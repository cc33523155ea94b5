// The benchmarks of `shardmat bench`: one file each and one line in the list of commands/bench.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace shardmat::tools {

/// Adds a benchmark with its options; the function it returns runs it and returns the exit code.
using Benchmark = std::function<int()> (*)(CLI::App& bench);

std::function<int()> add_bench_batched(CLI::App& bench);
std::function<int()> add_bench_features(CLI::App& bench);
std::function<int()> add_bench_io(CLI::App& bench);
std::function<int()> add_bench_kernels(CLI::App& bench);
std::function<int()> add_bench_papers(CLI::App& bench);
std::function<int()> add_bench_scaling(CLI::App& bench);
std::function<int()> add_bench_spmm(CLI::App& bench);

}  // namespace shardmat::tools
