// shardmat bench: becomes shardmat-bench as soon as the parser meets the word, so that all that follows is parsed there.
#include "tools/cli/command.h"
#include "tools/cli/other_programs.h"

namespace shardmat::tools {

std::function<int()> add_bench(const CommandLine& program) {
  program.add_subcommand("bench", kBenchHelp).when_met(become_bench);
  return []() -> int { become_bench(); };
}

}  // namespace shardmat::tools
