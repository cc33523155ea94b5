#include "tools/cli/checks.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <string>

#include "kernels/base/error.h"
#include "partition/files/atomic_file.h"
#include "partition/files/object_name.h"
#include "partition/readers/replaceable.h"

namespace shardmat::tools {
ValueCheck shard_file_name() {
  return value_check(
      [](const std::string& text) {
        const std::string suffix = std::filesystem::path(text).extension().string();
        return is_output_name(text) && (suffix == ".h5" || suffix == ".hdf5");
      },
      "the name of a shard file, ending in .h5 or .hdf5");
}

ValueCheck picture_name() {
  return value_check(
      [](const std::string& text) { return is_output_name(text) && std::filesystem::path(text).extension() == ".png"; },
      "the name of a picture, ending in .png");
}

ValueCheck plot_name() {
  return value_check(
      [](const std::string& text) {
        const std::string suffix = std::filesystem::path(text).extension().string();
        return is_output_name(text) && (suffix == ".svg" || suffix == ".png" || suffix == ".pdf");
      },
      "the name of a picture, ending in .svg, .png or .pdf");
}

void check_report_file(const std::string& path) {
  if (path.empty() || path == "-") return;
  check_writable(path);
  require_replaceable(path, Output::report);
}

void require_spared(const std::vector<InputFile>& inputs, const std::vector<std::string>& outputs) {
  std::error_code ignored;
  const auto file = [](const std::string& name) { return std::filesystem::path(split_object_name(name).file); };
  const auto same_file = [&](const std::string& a, const std::string& b) {
    return std::filesystem::equivalent(file(a), file(b), ignored);
  };
  const auto same_name = [&](const std::string& a, const std::string& b) {  // of files that need not exist yet
    const std::filesystem::path place = std::filesystem::weakly_canonical(file(a), ignored);
    return !place.empty() && place == std::filesystem::weakly_canonical(file(b), ignored);
  };
  const auto is_file = [&](const std::string& name) {  // /dev/null takes any number of results
    return !name.empty() && name != "-" && !std::filesystem::is_character_file(file(name), ignored);
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!is_file(outputs[i])) continue;
    for (const InputFile& input : inputs)
      if (!input.name.empty() && same_file(input.name, outputs[i]))
        throw Error(ErrorKind::usage,
                    fmt::format("{} is {} itself; write the result to another file", outputs[i], input.what));
    for (std::size_t j = 0; j < i; ++j)
      if (is_file(outputs[j]) && (same_file(outputs[j], outputs[i]) || same_name(outputs[j], outputs[i])))
        throw Error(ErrorKind::usage, fmt::format("{} is named for two results; write one to another file", outputs[i]));
  }
}

}  // namespace shardmat::tools
