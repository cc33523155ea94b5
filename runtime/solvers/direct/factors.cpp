#include "runtime/solvers/direct/factors.h"

#include "comm/communicator.h"
#include "kernels/base/error.h"
#include "runtime/context/context.h"

namespace shardmat::direct {

bool can_factorise(const Communicator& ranks) {
  return (built_with_mumps() && ranks.native() != MPI_COMM_NULL) || (built_with_eigen() && ranks.size() == 1);
}

std::unique_ptr<Factors> choose_factors(Context& context) {
  Communicator& ranks = context.communicator();
  const bool has_mpi = ranks.native() != MPI_COMM_NULL;
  std::unique_ptr<Factors> made;
  if (has_mpi) made = make_mumps(context);
  if (made == nullptr && ranks.size() == 1) made = make_eigen();
  ranks.run_agreed([&] {
    if (made != nullptr) return;
    if (ranks.size() > 1)
      throw Error(ErrorKind::usage,
                  "this build has no MUMPS to factorise a matrix on several ranks; install libmumps-dev and build again, or "
                  "start one process without mpirun (with libeigen3-dev)",
                  "preconditioner");
    throw Error(ErrorKind::usage,
                "this build has neither MUMPS nor Eigen to factorise a matrix; install libmumps-dev or libeigen3-dev and "
                "build again",
                "preconditioner");
  });
  return made;
}

}  // namespace shardmat::direct
