#include "tools/bench/papers/profiler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "tools/cli/other_programs.h"

namespace shardmat::tools {
namespace {

/// The fields of a line of CSV in which every field is quoted.
std::vector<std::string> quoted_fields(const std::string& line) {
  std::vector<std::string> fields;
  for (std::size_t at = 0; (at = line.find('"', at)) != std::string::npos;) {
    const std::size_t end = line.find('"', at + 1);
    if (end == std::string::npos) break;
    fields.push_back(line.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return fields;
}

std::optional<double> number_in(std::string text) {
  std::erase(text, ',');  // ncu groups digits
  try {
    std::size_t read = 0;
    const double value = std::stod(text, &read);
    return read == text.size() ? std::optional(value) : std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<double> metric_in_csv(const std::string& csv, const std::string& metric) {
  double sum = 0;
  int count = 0;
  for (std::size_t begin = 0; begin < csv.size();) {
    const std::size_t end = std::min(csv.find('\n', begin), csv.size());
    const std::vector<std::string> fields = quoted_fields(csv.substr(begin, end - begin));
    begin = end + 1;
    for (std::size_t i = 0; i + 1 < fields.size(); ++i)
      if (fields[i] == metric)
        if (const auto value = number_in(fields.back())) sum += *value, ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

Counted count_by_ncu(const std::string& metric, const std::string& kernel, const std::vector<std::string>& arguments) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  if (!file) return {{}, "no room for a temporary file"};
  std::vector<std::string> words{"ncu",
                                 "--csv",
                                 "--metrics",
                                 metric,
                                 "--kernel-name",
                                 "regex:" + kernel,
                                 "--launch-count",
                                 "3",
                                 (program_folder() / "shardmat").string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(file.get()), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return {{}, "ncu is not on the PATH"};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return {{}, "ncu was lost"};
  std::string text;
  std::rewind(file.get());
  char block[4096];
  for (std::size_t read = 0; (read = std::fread(block, 1, sizeof block, file.get())) > 0;) text.append(block, read);
  if (const auto value = metric_in_csv(text, metric)) return {value, ""};
  if (text.find("ERR_NVGPUCTRPERM") != std::string::npos)
    return {{}, "ncu may not read the GPU's counters (ERR_NVGPUCTRPERM)"};
  return {{}, fmt::format("ncu counted nothing (status {})", WIFEXITED(status) ? WEXITSTATUS(status) : -1)};
}

}  // namespace shardmat::tools
