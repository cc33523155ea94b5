#include "tools/cli/report_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "partition/generators/generator.h"
#include "tools/cli/checks.h"

namespace shardmat::tools {
namespace {

constexpr std::string_view kMatrixSuffixes[] = {".h5", ".hdf5", ".h5ad", ".mtx", ".gz", ".bz2", ".xz", ".zst", ".npz"};

/// CLI11 gives an optional value the next word, which may have been meant as the matrix.
ValueCheck no_matrix() {
  return ValueCheck([](std::string& text) {
    const std::string suffix = std::filesystem::path(text).extension().string();
    const bool file = std::find(std::begin(kMatrixSuffixes), std::end(kMatrixSuffixes), suffix) != std::end(kMatrixSuffixes);
    if (!file && !is_generator_specification(text)) return std::string();
    return fmt::format(
        "{} is the name of a matrix, not of a JSON file; put --json last, or write --json=- for "
        "standard output",
        text);
  });
}

}  // namespace

Option add_json_option(const CommandLine& app, std::string& json, const std::string& what) {
  const auto take = [&json](const std::string& name) {
    json = name;
    // CLI11 asks no validator of an optional value that is empty: an unset variable of a script.
    if (name.empty()) refuse_value("--json", "it must be the name of a file, not \"\"");
  };
  return app.in(Topic::output)
      .add_option_function(
          "--json", take,
          fmt::format("write the report as JSON to FILE{}. Without a name, or with -, print JSON in place of the text",
                      what))
      ->optional_value("-")
      ->option_text("[FILE]")
      ->check(output_name())
      ->check(no_matrix())
      ->common();
}

Option add_backend_option(const CommandLine& app, std::string& backend, const std::string& help) {
  return app.in(Topic::machine)
      .add_option("--backend", backend, help)
      ->check(one_of({"auto", "host", "cuda"}))
      ->capture_default_str()
      ->common();
}

Option add_seed_option(const CommandLine& app, std::uint64_t& seed, const std::string& help) {
  return app.in(Topic::input)
      .add_option("--seed", seed, help)
      ->check(whole_number(0, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
}

}  // namespace shardmat::tools
