// The shardmat program: the list of subcommands, and the one place where an error becomes a message and an exit code.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"
#include "tools/command.h"
#include "tools/environment.h"

#ifndef SHARDMAT_VERSION
#define SHARDMAT_VERSION "unknown"
#endif

namespace shardmat::tools {
namespace {

constexpr Command kCommands[] = {add_generate, add_partition, add_info, add_multiply, add_verify_file, add_bench};

constexpr const char* kExitCodes =
    "Exit codes: 0 ok, 1 internal error, 2 usage, 3 input, 4 memory, device or disk, 5 a rank was lost, 6 verification failed.\n";

/// Every rank parses the same command line; one says what is wrong with it.
void say(const std::string& message) {
  if (launch().rank == 0) fmt::print(stderr, "shardmat: {}\n", message);
}

std::vector<std::string> option_names(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// The subcommand that was being parsed.
CLI::App& innermost(CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

/// CLI11 says which word it did not expect; we add the word that was probably meant.
std::string explain(CLI::App& program, const CLI::ParseError& error, int argc, char** argv) {
  CLI::App& app = innermost(program);
  std::string message = error.what();
  std::vector<std::string> known = option_names(app);
  for (const CLI::App* subcommand : app.get_subcommands([](CLI::App*) { return true; })) known.push_back(subcommand->get_name());
  for (int i = 1; i < argc; ++i) {
    const std::string word(argv[i], std::min(std::char_traits<char>::length(argv[i]), std::string_view(argv[i]).find('=')));
    if (message.find(word) == std::string::npos || std::find(known.begin(), known.end(), word) != known.end()) continue;
    if (const std::string near = nearest(word, known); !near.empty()) message += fmt::format(" (did you mean {}?)", near);
    break;
  }
  std::string path = app.get_name();
  for (const CLI::App* parent = app.get_parent(); parent != nullptr; parent = parent->get_parent())
    path = parent->get_name() + " " + path;
  return message + "; see: " + path + " --help";
}

int parse_and_run(int argc, char** argv) {
  CLI::App program{"Sparse matrices too big or too slow for one GPU, multiplied by many.", "shardmat"};
  program.set_version_flag("--version", SHARDMAT_VERSION);
  program.require_subcommand(1);
  program.footer("\n" + environment_help() + "\n" + kExitCodes);
  std::vector<std::function<int()>> runs;
  std::vector<const CLI::App*> apps;
  for (const Command add : kCommands) {
    runs.push_back(add(program));
    apps.push_back(program.get_subcommands([](CLI::App*) { return true; }).back());
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    return launch().rank == 0 ? program.exit(request) : 0;
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::usage, explain(program, error, argc, argv));
  }
  check_environment();
  set_thread_count(usable_cores());  // ranks share them out when they meet
  for (std::size_t i = 0; i < apps.size(); ++i)
    if (apps[i]->parsed()) return runs[i]();
  return 0;
}

}  // namespace
}  // namespace shardmat::tools

int main(int argc, char** argv) {
  using namespace shardmat;
  using namespace shardmat::tools;
  try {
    return parse_and_run(argc, argv);
  } catch (const Error& error) {
    say(error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    say("not enough host memory; use more hosts or a smaller matrix");
    return static_cast<int>(ErrorKind::resources);
  } catch (const std::exception& error) {
    say(fmt::format("internal error: {}", error.what()));
    return static_cast<int>(ErrorKind::internal);
  }
}
