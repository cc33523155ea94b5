#include "runtime/doctor/doctor.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <memory>

#include "comm/launcher.h"
#include "tools/cli/checks.h"
#include "tools/cli/command.h"
#include "tools/cli/hidden_option.h"
#include "tools/cli/print_report.h"
#include "tools/cli/report_option.h"
#include "tools/cli/run_ranks.h"
#include "tools/cli/version.h"

namespace shardmat::tools {
namespace {

constexpr int kFound = 1;  ///< exit code

struct Options {
  doctor::Options doctor;
  std::string json;
  double timeout = 20;
  bool quick = false;
};

/// Slurm started this process among others, and gave it nothing to find them by: MPI would end it with an error of its own.
bool is_without_pmi() {
  const Launch told = launch();
  for (const char* variable : {"PMIX_RANK", "PMI_RANK", "PMI_FD"})
    if (std::getenv(variable) != nullptr) return false;
  return told.size > 1 && told.variable.rfind("SLURM_", 0) == 0;
}

void print(const doctor::Report& report, const std::string& json) {
  if (launch().rank != 0) return;  // one of processes that are each alone
  if (!json.empty()) write_report(json, to_json(report));
  // Under mpirun a terminal may be one of its own, whose text goes to a file.
  const bool terminal = ::isatty(STDOUT_FILENO) != 0 && launch().launcher.empty();
  if (json != "-") write_text("-", to_text(report, terminal && std::getenv("NO_COLOR") == nullptr));
  std::fflush(stdout);
}

int examine(const Options& options, Communicator& communicator) {
  communicator.run_agreed([&] {
    if (communicator.rank() == 0) check_report_file(options.json);
  });
  const doctor::Report report = doctor::examine(communicator, options.doctor);
  if (report.lost) {
    if (communicator.rank() == 0) print(report, options.json);
    std::rethrow_exception(report.lost);
  }
  communicator.run_agreed([&] {
    if (communicator.rank() == 0) print(report, options.json);
  });
  return report.findings.empty() ? 0 : kFound;
}

}  // namespace

std::function<int()> add_doctor(const CommandLine& program) {
  const CommandLine app =
      program.add_subcommand("doctor", "Look at launcher, cores, memory, GPUs and network, and say what should be changed");
  auto o = std::make_shared<Options>();
  add_json_option(app, o->json);
  app.in(Topic::computation)
      .add_flag("--quick", o->quick, "measure nothing: no load, clocks, links or health of GPUs")
      ->common();
  app.in(Topic::machine)
      .add_option("--timeout", o->timeout, "stop if a rank has not answered for X seconds")
      ->check(positive_number())
      ->capture_default_str()
      ->common();
  app.add_option("--root", o->doctor.root, "for tests: the folder that stands for /");
  hide_option(app, "--root");
  app.footer(
      "Start it as the runs that it is for: under the same mpirun or srun, with the same options. No measurement begins "
      "later "
      "than 4 s after its start, so that it takes at most 5 s, or as long as CUDA and NCCL take to start. Exit code 0: "
      "nothing to "
      "change, 1: findings. Attach its JSON to reports of faults.\n"
      "\nExamples:\n  shardmat doctor\n  mpirun -n 4 shardmat doctor\n  srun --mpi=pmix -N 2 -n 8 shardmat doctor --json "
      "doctor.json\n");
  return [app, o] {
    o->doctor.measure = !o->quick;
    o->doctor.program = version();
    if (is_without_pmi()) {
      Communicator alone = Communicator::alone();
      return examine(*o, alone);
    }
    return run_ranks(
        app, o->timeout, [&](Communicator& communicator) { return examine(*o, communicator); }, World::any);
  };
}

}  // namespace shardmat::tools
