#include "tools/cli/other_programs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "kernels/base/error.h"

namespace shardmat::tools {

std::filesystem::path program_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

void become(const std::string& program, std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string path = (program_folder() / program).string();
  ::execv(path.c_str(), arguments.data());
  throw Error(ErrorKind::resources,
              fmt::format("{} cannot be started: {}. It must lie beside shardmat; build it (cmake --build "
                          "build --target {}), or install all programs (cmake --install build)",
                          path, std::strerror(errno), program));
}

void become_bench() { become("shardmat-bench", own_words()); }

}  // namespace shardmat::tools
