#include "tools/checks.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "kernels/base/error.h"
#include "partition/atomic_file.h"
#include "partition/replaceable.h"
#include "partition/vector_file.h"

namespace shardmat::tools {
namespace {

template <class T>
std::optional<T> parse(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// CLI11 wants the text of the error, empty for none.
ValueCheck check(std::function<bool(const std::string&)> good, const std::string& wanted) {
  return ValueCheck([good = std::move(good), wanted](std::string& text) {
    return good(text) ? std::string() : fmt::format("it must be {}, not \"{}\"", wanted, text);
  });
}

bool is_output_name(const std::string& text) { return !text.empty() && text.rfind("--", 0) != 0; }

}  // namespace

ValueCheck whole_number(std::int64_t min, std::int64_t max) {
  return check(
      [=](const std::string& text) {
        const auto value = parse<std::int64_t>(text);
        return value && *value >= min && *value <= max;
      },
      fmt::format("a whole number from {} to {}", min, max));
}

ValueCheck finite_number() {
  return check(
      [](const std::string& text) {
        const auto value = parse<double>(text);
        return value && std::isfinite(*value);
      },
      "a finite number");
}

ValueCheck positive_number() {
  return check(
      [](const std::string& text) {
        const auto value = parse<double>(text);
        return value && std::isfinite(*value) && *value > 0;
      },
      "a number greater than 0");
}

ValueCheck output_name() { return check(is_output_name, "the name of a file"); }

ValueCheck shard_file_name() {
  return check(
      [](const std::string& text) {
        const std::string suffix = std::filesystem::path(text).extension().string();
        return is_output_name(text) && (suffix == ".h5" || suffix == ".hdf5");
      },
      "the name of a shard file, ending in .h5 or .hdf5");
}

ValueCheck picture_name() {
  return check(
      [](const std::string& text) { return is_output_name(text) && std::filesystem::path(text).extension() == ".png"; },
      "the name of a picture, ending in .png");
}

ValueCheck plot_name() {
  return check(
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
  const auto file = [](const std::string& name) { return vector_file_name(name); };
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
