// A subcommand of the program: one file in commands/ and one line in the list of main.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace shardmat::tools {

/// Adds a subcommand with its options to the program. The function it returns does the work after parsing, and returns the
/// exit code; errors are thrown as shardmat::Error.
using Command = std::function<int()> (*)(CLI::App& program);

std::function<int()> add_batch(CLI::App& program);
std::function<int()> add_bench(CLI::App& program);
std::function<int()> add_convert(CLI::App& program);
std::function<int()> add_generate(CLI::App& program);
std::function<int()> add_help(CLI::App& program);
std::function<int()> add_info(CLI::App& program);
std::function<int()> add_multiply(CLI::App& program);
std::function<int()> add_partition(CLI::App& program);
std::function<int()> add_predict(CLI::App& program);
std::function<int()> add_verify_file(CLI::App& program);

}  // namespace shardmat::tools
