#include "partition/files/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/base/error.h"
#include "kernels/base/shortened.h"
#include "kernels/base/text.h"
#include "partition/files/input_file.h"

namespace shardmat {
namespace {

/// The deepest nesting of brackets outside strings; what is no JSON counts alike up to its first fault.
int depth_of(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size() && deepest <= kMostJsonDepth; ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

[[noreturn]] void fail(const std::string& source, const std::string& what) {
  throw Error(ErrorKind::input, fmt::format("{}: {}", source, what));
}

}  // namespace

nlohmann::ordered_json parse_json(std::string_view text, const std::string& source, std::int64_t most_bytes) {
  if (std::ssize(text) > most_bytes)
    fail(source, fmt::format("it has {} of JSON; at most {} are read", human_bytes(static_cast<double>(text.size())),
                             human_bytes(static_cast<double>(most_bytes))));
  if (depth_of(text) > kMostJsonDepth)
    fail(source, fmt::format("its JSON is nested more than {} deep; nothing that is read here is", kMostJsonDepth));
  try {
    return nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    fail(source, fmt::format("it is no JSON, or was cut off ({})", shortened(e.what())));
  }
}

nlohmann::ordered_json read_json(const std::filesystem::path& path, std::int64_t most_bytes) {
  return parse_json(InputFile(path).read_all(most_bytes, "such a JSON file"), path.string(), most_bytes);
}

}  // namespace shardmat
