// The launcher against MPI: do the processes that were started know of each other?
#include <fmt/format.h>

#include <cstdlib>

#include "comm/launcher.h"
#include "comm/mpi_library.h"
#include "comm/mpi_session.h"
#include "runtime/doctor/check_list.h"

namespace shardmat::doctor {
namespace {

Json look_at_launch(const Viewpoint& viewpoint) {
  const Launch told = launch();
  int started = 0;
  MPI_Initialized(&started);
  return {{"launcher", told.launcher.empty() ? "none" : told.launcher},
          {"launcher_variable", told.variable},
          {"launcher_ranks", told.size},
          {"launcher_rank", told.rank},
          {"world_ranks", viewpoint.ranks},
          {"mpi", mpi_library()},
          {"mpi_started", started != 0},
          {"mpi_threads", started != 0 && mpi_takes_threads()}};
}

void judge_launch(const Gathered& all, Findings& findings) {
  const Json& facts = all.facts(0, "launch");
  const int told = get(facts, "launcher_ranks", 1);
  const auto mpi = get<std::string>(facts, "mpi", "this MPI"), launcher = get<std::string>(facts, "launcher", "");
  if (told > 1 && all.size() == 1) {
    const bool is_slurm = launcher.find("srun") != std::string::npos;
    findings.push_back(
        {"singletons",
         fmt::format(
             "{} started {} processes ({}={}), but each is alone, rank 0 of 1{}", launcher, told,
             get<std::string>(facts, "launcher_variable", ""), told,
             get(facts, "mpi_started", true) ? "" : ": there are no variables of PMI or PMIx, so MPI was not started"),
         "Each process would do the whole work and write the same files.",
         is_slurm
             ? fmt::format(
                   "srun --mpi=pmix (srun --mpi=list shows what Slurm was built with), or mpirun of {} inside sbatch.", mpi)
             : fmt::format("Start the ranks with the mpirun of {}, with which this program was built: {}.", mpi, mpirun())});
  }
  std::vector<int> without;
  for (int rank = 0; rank < all.size(); ++rank)
    if (get(all.facts(rank, "launch"), "mpi_started", false) && !get(all.facts(rank, "launch"), "mpi_threads", true))
      without.push_back(rank);
  if (!without.empty())
    findings.push_back({"no_mpi_threads", fmt::format("{} has no MPI_THREAD_MULTIPLE", mpi),
                        "Loading and the service communicate on a second thread, and refuse to run without it.",
                        "Use a build of MPI with thread support (ompi_info | grep 'Thread support')."});
}

void show_launch(const Gathered& all, Rows& rows) {
  const Json& facts = all.facts(0, "launch");
  rows.emplace_back("launcher",
                    fmt::format("{}, {} process{}", get<std::string>(facts, "launcher", "none"),
                                get(facts, "launcher_ranks", 1), get(facts, "launcher_ranks", 1) == 1 ? "" : "es"));
  std::string hosts;
  for (const Gathered::Host& host : all.hosts())
    hosts += fmt::format("{}{} ({})", hosts.empty() ? "" : ", ", host.name, ranks_text(host.ranks));
  rows.emplace_back(
      "MPI", fmt::format("{}, {} rank{}", get<std::string>(facts, "mpi", ""), all.size(), all.size() == 1 ? "" : "s"));
  rows.emplace_back("hosts", hosts);
}

}  // namespace

const Check kLaunch{.name = "launch", .title = "Launch", .look = look_at_launch, .judge = judge_launch, .show = show_launch};

}  // namespace shardmat::doctor
