#include "tools/cli/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/parallel.h"
#include "kernels/base/print_error.h"
#include "kernels/base/text.h"
#include "partition/files/atomic_file.h"
#include "tools/cli/environment.h"
#include "tools/cli/help_formatter.h"
#include "tools/cli/setting_options.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/version.h"

namespace shardmat::tools {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 ok, 1 internal error, 2 usage, 3 input, 4 memory, device or disk, 5 a rank was lost, 6 verification "
    "failed, 7 a solver did not converge. `shardmat doctor`: 1 if there are findings. `shardmat compare`: 8 if a time "
    "became longer than allowed.\n";

/// Every rank parses the same command line; one says what is wrong with it.
void say(const std::string& message) {
  if (launch().rank == 0) print_error("shardmat: {}\n", message);
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

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(subcommand->get_name());
  return names;
}

/// "shardmat bench kernels".
std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : path_of(*app.get_parent()) + " " + app.get_name();
}

/// The first word that nobody took. Behind a subcommand options go first: a wrong one also leaves its value behind.
std::string unknown_word(const CLI::App& program, const CLI::App& app) {
  std::vector<std::string> words = program.remaining(true);
  if (!words.empty() && !subcommand_names(app).empty()) return words.front();
  for (const std::string& word : words)
    if (word.size() > 1 && word[0] == '-') return word.substr(0, word.find('='));
  return words.empty() ? "" : words.front();
}

/// What other programs call an option. Those of one meaning stand in the order in which a command's own name is looked for.
constexpr std::pair<const char*, const char*> kOtherNames[] = {{"--method", "--solver"},
                                                               {"--ksp", "--solver"},
                                                               {"--ksp-type", "--solver"},
                                                               {"--ksp_type", "--solver"},
                                                               {"--algorithm", "--solver"},
                                                               {"--algorithm", "--method"},
                                                               {"--solver", "--method"},
                                                               {"--partitioner", "--method"},
                                                               {"--pc", "--preconditioner"},
                                                               {"--pc-type", "--preconditioner"},
                                                               {"--pc_type", "--preconditioner"},
                                                               {"--precond", "--preconditioner"},
                                                               {"--tol", "--rtol"},
                                                               {"--tol", "--tolerance"},
                                                               {"--tolerance", "--rtol"},
                                                               {"--eps", "--rtol"},
                                                               {"--eps", "--tolerance"},
                                                               {"--rtol", "--tolerance"},
                                                               {"--maxiter", "--max-iterations"},
                                                               {"--max-it", "--max-iterations"},
                                                               {"--max_it", "--max-iterations"},
                                                               {"--iterations", "--max-iterations"},
                                                               {"--maxit", "--max-iterations"},
                                                               {"--x0", "--initial-guess"},
                                                               {"--guess", "--initial-guess"},
                                                               {"--k", "--count"},
                                                               {"--nev", "--count"},
                                                               {"--alpha", "--damping"},
                                                               {"--dtype", "--type"},
                                                               {"--precision", "--type"},
                                                               {"--device", "--backend"},
                                                               {"--cpu", "--backend"},
                                                               {"--gpu", "--backend"},
                                                               {"--out", "--output"},
                                                               {"--format", "--kernel"},
                                                               {"--nrhs", "--rhs"},
                                                               {"--columns", "--rhs"},
                                                               {"--reps", "--repetitions"},
                                                               {"--ranks", "--parts"},
                                                               {"--block-size", "--node-block-size"},
                                                               {"--block_size", "--node-block-size"},
                                                               {"--unknowns", "--node-block-size"}};

/// The option of a command that a word from another program means; empty if there is none.
std::string option_meant(const std::string& word, const std::vector<std::string>& known) {
  for (const auto& [other, own] : kOtherNames)
    if (word == other && std::find(known.begin(), known.end(), own) != known.end()) return own;
  return {};
}

/// Where CLI11 only says what it did not expect or misses, we say which word was probably meant.
std::string explain(CLI::App& program, const CLI::ParseError& error) {
  CLI::App& app = innermost(program);
  std::string message = error.what();
  constexpr const char* kTooOften = ": At Most 1 required but received ";
  if (const std::size_t at = message.find(kTooOften); at != std::string::npos)
    message = fmt::format("{} was given more than once; give it once", message.substr(0, at));
  if (const std::string word = unknown_word(program, app); !word.empty()) {
    const bool option = word[0] == '-';
    const std::vector<std::string> known = option ? option_names(app) : subcommand_names(app);
    const bool short_word = word.find_first_not_of('-') + 2 >= word.size();  // everything short is near to it
    const std::string meant = option ? option_meant(word, known) : "";
    const std::string near = !meant.empty() ? meant : short_word ? "" : nearest(word, known);
    message = option          ? fmt::format("there is no option {}", word)
              : known.empty() ? fmt::format("unexpected word \"{}\"", word)
                              : fmt::format("there is no \"{}\" to {}; choose {}", word,
                                            app.get_parent() ? app.get_name() : "run", join_choices(known));
    if (!near.empty()) message += fmt::format(" (did you mean {}?)", near);
  }
  return message + "; see: " + path_of(app) + " --help";
}

/// CLI11 leaves out the empty items of a list. Throws Error(usage) for one.
void refuse_empty_items(const CLI::App& app, const std::vector<std::string>& words) {
  const auto check = [&app](const std::string& option, const std::string& list, char delimiter) {
    if (list.empty() ||
        (list.front() != delimiter && list.back() != delimiter && list.find(std::string(2, delimiter)) == std::string::npos))
      return;
    throw Error(ErrorKind::usage,
                fmt::format("{}: there is an empty item in the list \"{}\"; see: {} --help", option, list, path_of(app)));
  };
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames())
      for (std::size_t i = 0; i < words.size() && option->get_delimiter() != '\0'; ++i)
        if (const std::string dashed = "--" + name; words[i] == dashed && i + 1 < words.size())
          check(dashed, words[i + 1], option->get_delimiter());
        else if (words[i].starts_with(dashed + "="))
          check(dashed, words[i].substr(dashed.size() + 1), option->get_delimiter());
}

int parse_and_run(int argc, char** argv, std::span<const AddCommand> commands) {
  CLI::App program{"Multiplies sparse matrices that are too big or too slow for one GPU, on many GPUs.", "shardmat"};
  program.formatter(std::make_shared<HelpFormatter>());
  CLI::Option* const json = program.add_flag("--json")->description("with --version: print it as JSON");
  json->needs(program.set_version_flag(
      "--version", [json] { return json->count() > 0 ? version_json() : version_text(); },
      "print the version, the compiler, the instruction sets and the libraries of this program"));
  program.set_help_flag("-h,--help", "print this text");
  program.set_help_all_flag("--help-all", "print this text with all options");
  program.require_subcommand(1);
  program.footer(environment_help() + "\n" + kExitCodes +
                 "\nFor help on a command: shardmat COMMAND --help, or shardmat help COMMAND\n");
  std::vector<std::function<int()>> runs;
  std::vector<const CLI::App*> apps;
  for (const AddCommand add : commands) {
    runs.push_back(add(CommandLine(program)));
    apps.push_back(program.get_subcommands([](CLI::App*) { return true; }).back());
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& request) {  // --help, --version
    return launch().rank == 0 ? program.exit(request) : 0;
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::usage, explain(program, error));
  }
  refuse_empty_items(innermost(program), {argv + 1, argv + argc});
  check_environment();
  const ThreadCount threads(threads_of_environment(usable_cores()));  // a Context has this rank's share
  try {
    for (std::size_t i = 0; i < apps.size(); ++i)
      if (apps[i]->parsed()) return runs[i]();
  } catch (const Error& error) {
    throw Error(error.kind(), message_of(error, CommandLine(innermost(program))));
  }
  return 0;
}

/// True if what was printed did not get out, after saying so.
bool output_is_lost() {
  std::cout.flush();
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return false;
  const int error = errno;
  print_error("shardmat: the report could not be written to standard output{}; make room there, or name a file\n",
              error == 0 ? "" : fmt::format(" ({})", std::strerror(error)));
  return true;
}

/// Whichever way the process is ended by others, except by SIGKILL.
void leave_no_unfinished_files() {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails like one on a full disk, and is cleaned up after
  std::at_quick_exit(remove_unfinished_files);
  struct sigaction action {};
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  action.sa_handler = [](int signal) {
    remove_unfinished_files();
    std::raise(signal);  // with the handler gone: ends the process as if there had been none
  };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGUSR1, SIGUSR2}) {
    struct sigaction present {};
    if (sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
  }
}

}  // namespace

int run_program(int argc, char** argv, std::span<const AddCommand> commands) {
  open_standard_streams(ClosedOutput::fails);
  leave_no_unfinished_files();
  constexpr int kResources = static_cast<int>(ErrorKind::resources);
  try {
    const int exit_code = parse_and_run(argc, argv, commands);
    return output_is_lost() && exit_code == 0 ? kResources : exit_code;
  } catch (const Error& error) {
    say(error.what());
    return error.exit_code();
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0 && output_is_lost()) return kResources;  // which fmt::print throws
    const bool no_thread = error.code() == std::errc::resource_unavailable_try_again;
    say(fmt::format("{}{}", no_thread ? "no thread can be started, for want of memory or processes: " : "internal error: ",
                    error.what()));
    return no_thread ? kResources : static_cast<int>(ErrorKind::internal);
  } catch (const std::bad_alloc&) {
    say("not enough host memory; use more hosts or a smaller matrix");
    return kResources;
  } catch (const std::exception& error) {
    say(fmt::format("internal error: {}", error.what()));
    return static_cast<int>(ErrorKind::internal);
  }
}

}  // namespace shardmat::tools
