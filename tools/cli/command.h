// A subcommand of a program: one file in commands/ and one line in the list of tools/main.cpp.
#pragma once

#include <functional>

#include "tools/cli/options.h"

namespace shardmat::tools {

/// Adds a subcommand with its options to the program. The function it returns does the work after parsing, and returns the
/// exit code; errors are thrown as shardmat::Error.
using AddCommand = std::function<int()> (*)(const CommandLine& program);

std::function<int()> add_batch(const CommandLine& program);
std::function<int()> add_bench(const CommandLine& program);
std::function<int()> add_client(const CommandLine& program);
std::function<int()> add_compare(const CommandLine& program);
std::function<int()> add_convert(const CommandLine& program);
std::function<int()> add_doctor(const CommandLine& program);
std::function<int()> add_eigen(const CommandLine& program);
std::function<int()> add_generate(const CommandLine& program);
std::function<int()> add_help(const CommandLine& program);
std::function<int()> add_info(const CommandLine& program);
std::function<int()> add_multiply(const CommandLine& program);
std::function<int()> add_pagerank(const CommandLine& program);
std::function<int()> add_partition(const CommandLine& program);
std::function<int()> add_predict(const CommandLine& program);
std::function<int()> add_serve(const CommandLine& program);
std::function<int()> add_solve(const CommandLine& program);
std::function<int()> add_token(const CommandLine& program);
std::function<int()> add_verify_file(const CommandLine& program);
std::function<int()> add_worker(const CommandLine& program);

}  // namespace shardmat::tools
