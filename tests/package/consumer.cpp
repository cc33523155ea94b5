// Multiplies a generated matrix inside this program's own MPI, through the installed package only.
#include <mpi.h>
#include <shardmat/runtime/multiply.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int exit_code = 1;
  {
    shardmat::Communicator communicator(MPI_COMM_WORLD);
    shardmat::MultiplyOptions options;
    options.matrix = "elasticity:n=6";
    options.backend = shardmat::BackendChoice::host;
    options.verify = true;
    const shardmat::MultiplyReport report = shardmat::multiply(communicator, options);
    if (communicator.rank() == 0) std::printf("%s", shardmat::to_text(report).c_str());
    exit_code = report.verification->passed && report.rows == 648 ? 0 : 1;
  }
  MPI_Finalize();
  return exit_code;
}
