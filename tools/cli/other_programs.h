// The programs that belong to shardmat: shardmat-serve, shardmat-bench. All lie in one folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace shardmat::tools {

/// The folder in which this program lies.
std::filesystem::path program_folder();

/// The words of this process's command line; the first is the name of the program.
std::vector<std::string> own_words();

/// Replaces this process by `program`, which lies in the same folder. `words` is its command line, its name included. Throws
/// Error(resources) with the build target if the program cannot be started.
[[noreturn]] void become(const std::string& program, std::vector<std::string> words);

/// The help of `shardmat bench`, for both programs that have this command.
inline constexpr const char* kBenchHelp =
    "Benchmarks of kernels, batches, scaling, solvers, files, the service; results in tools/bench/results.md";

/// Replaces this process by shardmat-bench with the same command line.
[[noreturn]] void become_bench();

}  // namespace shardmat::tools
