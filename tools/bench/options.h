// The options that benchmarks of kernels have in common.
#pragma once

#include <string>
#include <vector>

#include "kernels/base/types.h"
#include "tools/bench/matrices.h"
#include "tools/cli/options.h"

namespace shardmat::tools {

/// Of every benchmark of kernels.
struct RunOptions {
  std::vector<std::string> types{"f32", "f64"};
  std::string backend = "auto", json;
  int repetitions = 0;  ///< 0: the usual ones
  bool verify = true;

  std::vector<ValueType> value_types() const;
  int usual_repetitions(Backend backend) const;
};

/// Of those on single matrices.
struct BenchOptions : RunOptions {
  std::vector<std::string> matrices;
  std::string size = "auto";
  bool warm = false;

  /// auto is full on a GPU, small on the host.
  Size matrix_size(Backend backend) const;
};

/// `types`: the values that --type takes.
void add_run_options(const CommandLine& app, RunOptions& options, const std::vector<std::string>& types = {"f32", "f64"});
/// The same with the matrices.
void add_bench_options(const CommandLine& app, BenchOptions& options,
                       const std::vector<std::string>& types = {"f32", "f64"});
/// A list of words as one value "a,b", so that words behind it are not taken for more of them.
Option add_list(const CommandLine& app, const std::string& name, std::vector<std::string>& list, const std::string& help);

}  // namespace shardmat::tools
