#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <optional>

#include "kernels/base/error.h"
#include "partition/files/atomic_file.h"
#include "partition/generators/generator.h"
#include "tools/cli/command.h"
#include "tools/cli/environment.h"
#include "tools/commands/write_file.h"

namespace shardmat::tools {
namespace {

/// A parameter that is on or off, and so needs no value on the command line.
bool is_flag(const GeneratorParameter& parameter) { return parameter.default_value == "off"; }

/// True if the default is what another parameter says.
bool follows_another(const GeneratorParameter& parameter, const Generator& generator) {
  return std::any_of(generator.parameters.begin(), generator.parameters.end(),
                     [&](const GeneratorParameter& other) { return other.name == parameter.default_value; });
}

struct Options {
  const Generator* generator = nullptr;
  std::optional<CommandLine> app;
  GeneratorArguments arguments;  ///< values of options given
  std::list<bool> flags;
  FileOptions file;
};

void add_parameter(Options& options, const GeneratorParameter& parameter) {
  const std::string name(parameter.name), help(parameter.help);
  if (is_flag(parameter)) {
    options.app->in(Topic::input)
        .add_flag_callback(
            "--" + name, [&options, name] { options.arguments[name] = "on"; }, help)
        ->common();
    return;
  }
  const std::string fallback(parameter.default_value);
  const Option option = options.app->in(Topic::input)
                            .add_option_function(
                                "--" + name, [&options, name](const std::string& value) { options.arguments[name] = value; },
                                fallback.empty() ? help : help + " (default " + fallback + ")")
                            ->type_name("VALUE");
  if (!parameter.rare && !follows_another(parameter, *options.generator)) option.common();
}

std::string specification(const Options& options) {
  std::string text(options.generator->name);
  char separator = ':';
  for (const auto& [name, value] : options.arguments) {
    text += fmt::format("{}{}={}", separator, name, value);
    separator = ',';
  }
  return text;
}

}  // namespace

std::function<int()> add_generate(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("generate", "Assemble a matrix (finite elements, graphs, bands) and write a shard file");
  app.require_subcommand();
  app.footer(
      "\nExamples:\n  shardmat generate elasticity --n 40 bar.h5\n"
      "  shardmat generate elasticity --mesh part.h5 --degree 2 part-elasticity.h5 --parts 2,4\n"
      "  mpirun -n 4 shardmat multiply elasticity:n=40      # the same matrix without a file\n");
  auto all = std::make_shared<std::list<Options>>();
  for (const Generator& generator : generators()) {
    Options& options = all->emplace_back();
    options.generator = &generator;
    options.app = app.add_subcommand(std::string(generator.name), std::string(generator.help));
    for (const GeneratorParameter& parameter : generator.parameters) add_parameter(options, parameter);
    add_file_options(*options.app, options.file);
  }
  return [all] {
    require_single_process("generate");
    const PeakMemory peak;
    for (const Options& options : *all)
      if (options.app->parsed()) {
        check_file_options(options.file);
        write_file(*make_generator(specification(options)), options.file, false, peak);
      }
    return 0;
  };
}

}  // namespace shardmat::tools
