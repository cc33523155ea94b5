// shardmat serve: becomes shardmat-serve, which lies beside this program. The options are declared here, too, so that their
// help and their errors are like those of all commands.
#include "tools/serve/words/serve_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "tools/cli/command.h"
#include "tools/cli/environment.h"

namespace shardmat::tools {
namespace {

/// The words of this process's command line behind the command's name.
std::vector<std::string> words_behind(const std::string& command) {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  bool behind = false;
  for (std::string word; std::getline(file, word, '\0');) {
    if (behind) words.push_back(word);
    behind = behind || word == command;
  }
  return words;
}

}  // namespace

std::function<int()> add_serve(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("serve", "Keep matrices on the ranks and multiply them by vectors that clients send");
  auto options = std::make_shared<serve::ServeOptions>();
  serve::add_serve_options(app, *options);
  return [options]() -> int {  // which the parser writes to
    require_single_process("serve");
    const std::string server = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "shardmat-serve").string();
    std::vector<std::string> words = words_behind("serve");
    std::vector<char*> arguments{const_cast<char*>(server.c_str())};
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(server.c_str(), arguments.data());
    throw Error(ErrorKind::resources, fmt::format("{} cannot be started: {}", server, std::strerror(errno)));
  };
}

}  // namespace shardmat::tools
