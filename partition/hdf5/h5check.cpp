// shardmat-h5check OBJECT… < FILE.h5
// Prints what an HDF5 file of another program holds (description.h), the named groups and datasets with where their
// numbers lie. A process of its own, because the HDF5 library may crash, loop or take all memory over damaged metadata:
// it has 1 GiB, 10 s of processor time, one file, which is open already, and may open no other, so that nothing that a
// file names is followed or loaded. Prints {"error": "…"} and ends with 3 where HDF5 cannot read the file.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "partition/hdf5/survey.h"

namespace {

void limit(__rlimit_resource resource, rlim_t most) {
  const rlimit limits{most, most};
  ::setrlimit(resource, &limits);
}

/// No more memory, time or files than metadata needs, and no core dump.
void confine() {
#ifdef SYS_close_range
  ::syscall(SYS_close_range, 3U, ~0U, 0U);  // what the process that started this one left open
#endif
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#ifndef __SANITIZE_ADDRESS__
  limit(RLIMIT_AS, rlim_t{1} << 30);
#endif
  limit(RLIMIT_CPU, 10);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_NOFILE, 0);
}

}  // namespace

int main(int argc, char** argv) {
  confine();
  std::string text;
  int status = 0;
  try {
    text = shardmat::survey_hdf5(STDIN_FILENO, std::vector<std::string>(argv + 1, argv + argc)).to_text();
  } catch (const std::exception& e) {
    status = 3;
    text = nlohmann::json{{"error", e.what()}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  text += '\n';
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t put = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (put <= 0) ::_exit(4);
    done += static_cast<std::size_t>(put);
  }
  ::_exit(status);  // HDF5's own exit handler may fail over what it has read
}
