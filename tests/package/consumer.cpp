// Multiplies a generated matrix inside this program's own MPI, through the installed package only.
#include <mpi.h>
#include <shardmat/kernels/spmm_tuner.h>
#include <shardmat/runtime/multiply.h>

#include <cstdio>
#include <vector>

namespace {

/// Y = 2·A·X with three right-hand sides.
bool many_right_hand_sides() {
  shardmat::Stream stream({shardmat::Backend::host, 0});
  const shardmat::HostCsr a{2, 3, {0, 1, 3}, {0, 1, 2}, {1.0, 2.0, 3.0}};
  shardmat::ConversionInput input(a.view(), shardmat::ValueType::f64, stream);
  const auto chosen = shardmat::SpmmTuner(input).choose({3}, {});
  const std::vector<double> x{1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<double> y(6);
  chosen.plan->multiply(2, x.data(), 3, 0, y.data(), 3, stream);
  return y == std::vector<double>{2, 4, 6, 58, 68, 78};
}

}  // namespace

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
    exit_code = report.verification->passed && report.rows == 648 && many_right_hand_sides() ? 0 : 1;
  }
  MPI_Finalize();
  return exit_code;
}
