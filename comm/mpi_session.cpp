#include "comm/mpi_session.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <thread>
#include <utility>

#include "comm/mpi_error.h"

namespace shardmat {
namespace {

/// Settings of Open MPI for a process that no launcher started, while MPI starts. Without them it starts a daemon for later
/// processes and probes every network, which takes 0.3 s. Settings of the user stay.
class SettingsOfOneRank {
 public:
  SettingsOfOneRank() {
    for (const char* launched : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_FD", "SLURM_STEP_ID"})
      if (std::getenv(launched) != nullptr) return;
    for (std::size_t i = 0; i < kSettings.size(); ++i) {
      own_[i] = std::getenv(kSettings[i].first) == nullptr;
      setenv(kSettings[i].first, kSettings[i].second, 0);
    }
  }
  ~SettingsOfOneRank() {  // children of this process may start many ranks
    for (std::size_t i = 0; i < kSettings.size(); ++i)
      if (own_[i]) unsetenv(kSettings[i].first);
  }
  SettingsOfOneRank(const SettingsOfOneRank&) = delete;
  SettingsOfOneRank& operator=(const SettingsOfOneRank&) = delete;

 private:
  /// Processes without a daemon have the same number: files named after it would be shared by all that run at the same time.
  static constexpr std::array<std::pair<const char*, const char*>, 4> kSettings{{{"OMPI_MCA_ess_singleton_isolated", "1"},
                                                                                 {"OMPI_MCA_orte_create_session_dirs", "0"},
                                                                                 {"OMPI_MCA_pml", "ob1"},
                                                                                 {"OMPI_MCA_btl", "self"}}};
  std::array<bool, kSettings.size()> own_{};
};

}  // namespace

MpiSession::MpiSession(int* argc, char*** argv) {
  const SettingsOfOneRank settings;
  int provided = MPI_THREAD_SINGLE;
  check_local(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (provided < MPI_THREAD_FUNNELED)
    throw Error(ErrorKind::resources, "this MPI was built without thread support (MPI_THREAD_FUNNELED); use another build");
}

MpiSession::~MpiSession() { MPI_Finalize(); }

void MpiSession::leave(int exit_code) {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  std::quick_exit(exit_code);
}

void MpiSession::leave_after(double seconds, int exit_code, std::string message) {
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    std::fprintf(stderr, "%s\n", message.c_str());
    leave(exit_code);
  }).detach();
}

bool mpi_takes_threads() {
  int provided = MPI_THREAD_SINGLE;
  check_local(MPI_Query_thread(&provided), "MPI_Query_thread");
  return provided == MPI_THREAD_MULTIPLE;
}

void require_mpi_threads() {
  if (!mpi_takes_threads())
    throw Error(ErrorKind::resources,
                "ranks would communicate on two threads here, but MPI was started without MPI_THREAD_MULTIPLE: pass it to "
                "MPI_Init_thread(), or use an MPI built with it");
}

}  // namespace shardmat
