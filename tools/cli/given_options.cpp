#include "tools/cli/given_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>

#include "partition/files/file_digest.h"
#include "tools/cli/version.h"

namespace shardmat::tools {
namespace {

/// Options and words that name files to write: what lies there before is no input.
constexpr std::string_view kOutputs[] = {"output", "--output", "--json", "--plot", "--vectors",
                                         "--spy",  "--csv",    "--html", "--save", "--vtk"};

std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : path_of(*app.get_parent()) + " " + app.get_name();
}

}  // namespace

std::vector<Given> given_options(const CommandLine& command) {
  const CLI::App& app = command.cli11();
  std::vector<Given> given{{"the version of the program", version(), {}}, {"the command", path_of(app), {}}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0) continue;
    Given& one = given.emplace_back();
    one.name = option->get_name();
    const bool output = std::find(std::begin(kOutputs), std::end(kOutputs), one.name) != std::end(kOutputs);
    for (const std::string& value : option->results()) {
      one.value += (one.value.empty() ? "" : " ") + value;
      if (const std::string digest = output ? "" : file_digest(value); !digest.empty())
        one.file += (one.file.empty() ? "" : "; ") + digest;
    }
  }
  return given;
}

std::vector<std::string> names_of_given(const CommandLine& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.cli11().get_options())
    if (option->count() > 0) names.push_back(option->get_name());
  return names;
}

}  // namespace shardmat::tools
