// shardmat serve: becomes shardmat-serve, which lies beside this program. The options are declared here, too, so that their
// help and their errors are like those of all commands.
#include "tools/serve/options/serve_options.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/command.h"
#include "tools/cli/environment.h"
#include "tools/cli/other_programs.h"

namespace shardmat::tools {
namespace {

constexpr const char* kServer = "shardmat-serve";

}  // namespace

std::function<int()> add_serve(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("serve", "Keep matrices on the ranks and multiply them by vectors that clients send");
  auto options = std::make_shared<serve::ServeOptions>();
  serve::add_serve_options(app, *options);
  return [options]() -> int {  // which the parser writes to
    require_single_process("serve");
    std::vector<std::string> words = own_words();
    words.erase(words.begin(), std::find(words.begin() + 1, words.end(), "serve"));
    words.front() = kServer;
    become(kServer, std::move(words));
  };
}

}  // namespace shardmat::tools
