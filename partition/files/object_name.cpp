#include "partition/files/object_name.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include "partition/files/rank_files.h"

namespace shardmat {
namespace {

/// A generator's arguments have a '=', and objects none, but for paths.
bool is_object(std::string_view text) {
  return !text.empty() && (text.front() == '/' || text.find_first_of("=,") == std::string_view::npos);
}

}  // namespace

bool names_input_file(const std::string& name) {
  std::error_code ignored;
  const auto status = std::filesystem::status(name, ignored);
  if (std::filesystem::exists(status)) return !std::filesystem::is_directory(status);
  return names_rank_files(name);
}

ObjectName split_object_name(const std::string& argument) {
  if (names_input_file(argument)) return {argument, ""};
  for (std::size_t colon = argument.rfind(':'); colon != std::string::npos && colon > 0;
       colon = argument.rfind(':', colon - 1)) {
    const std::string object = argument.substr(colon + 1);
    if (is_object(object) && names_input_file(argument.substr(0, colon))) return {argument.substr(0, colon), object};
  }
  const std::size_t colon = argument.rfind(':');
  if (colon == std::string::npos || colon == 0) return {argument, ""};
  const std::string file = argument.substr(0, colon), object = argument.substr(colon + 1);
  if (is_object(object) && std::filesystem::path(file).has_extension()) return {file, object};
  return {argument, ""};
}

}  // namespace shardmat
