#include "tools/cli/plot.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "kernels/base/error.h"
#include "tools/cli/other_programs.h"

namespace shardmat::tools {
namespace {

namespace fs = std::filesystem;

/// In the build tree beside the program, installed in share/shardmat.
fs::path find_script(const std::string& name, const std::string& option) {
  const fs::path folder = program_folder();
  for (const fs::path& path : {folder / name, folder.parent_path() / "share" / "shardmat" / name})
    if (fs::exists(path)) return path;
  throw Error(ErrorKind::resources,
              fmt::format("{0}: {1} is neither in {2} nor in {3}/share/shardmat; install the program with "
                          "cmake --install, or leave {0} out and draw from the --json file",
                          option, name, folder.string(), folder.parent_path().string()));
}

bool runs(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  int status = 0;
  if (::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return false;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// The first interpreter that has matplotlib: often the system's, not the one of a virtual environment.
std::string find_python(const std::string& option) {
  for (const char* python : {"python3", "/usr/bin/python3"})
    if (runs({python, "-c", "import sys\ntry: import matplotlib\nexcept ImportError: sys.exit(1)"})) return python;
  throw Error(ErrorKind::resources,
              fmt::format("{} needs Python with matplotlib: neither python3 on the PATH nor /usr/bin/python3 has it "
                          "(apt-get install python3-matplotlib)",
                          option));
}

}  // namespace

void require_plot_script(const std::string& script, const std::string& option) {
  find_script(script, option);
  find_python(option);
}

void plot(const std::string& script, const std::string& json, const std::string& output, const std::string& option) {
  // A file without a name, which the script opens as what it inherits.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  if (!file || std::fwrite(json.data(), 1, json.size(), file.get()) != json.size() || std::fflush(file.get()) != 0)
    throw Error(ErrorKind::resources, fmt::format("cannot draw {}: no room for a temporary file", output));
  const std::string report = fmt::format("/dev/fd/{}", ::fileno(file.get()));
  if (!runs({find_python(option), find_script(script, option).string(), report, "--output", output}))
    throw Error(ErrorKind::resources, fmt::format("cannot draw {}; see above", output));
}

}  // namespace shardmat::tools
