// Y = P·(A·(R·X)) over three row maps, for test_chain_of_three.py:
//   mpirun -n RANKS chain_of_three R A P X Y [COLUMNS]
// A is loaded first, R and P are put on its maps, and nothing is copied between the products.
#include <mpi.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi_session.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/product.h"
#include "runtime/matrix/vectors.h"
#include "runtime/source/matrix_source.h"

namespace shardmat {
namespace {

void multiply_chain(const std::vector<std::string>& paths, std::int64_t columns, Communicator& ranks) {
  Context context(ranks, BackendChoice::host);
  Stream& stream = context.stream();
  const auto load = [&](const std::string& path, const std::shared_ptr<const RowMap>& y_rows,
                        const std::shared_ptr<const RowMap>& x_rows) {
    LoadOptions options;
    options.right_hand_sides = columns, options.y_rows = y_rows, options.x_rows = x_rows;
    return std::make_unique<DistributedMatrix>(open_matrix(path, ranks), context, options);
  };
  const auto a = load(paths[1], nullptr, nullptr), r = load(paths[0], a->x_rows(), nullptr),
             p = load(paths[2], nullptr, a->y_rows());
  DistributedVector x(r->x_rows(), ValueType::f64, columns);
  x.read(*open_vector(paths[3], "x", x.rows(), 0, columns), stream);
  const auto times = [&](DistributedMatrix& matrix, const DistributedVector& of) {
    DistributedVector y(matrix.y_rows(), ValueType::f64, columns);
    const auto product = matrix.product(columns);
    product->multiply(1, of.view(), 0, y.view(), stream);
    product->wait(stream);
    return y;
  };
  times(*p, times(*a, times(*r, x))).write(paths[4], "y", stream);
}

int run(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  const std::vector<std::string> paths(argv + 1, argv + argc);
  Communicator ranks(MPI_COMM_WORLD);
  try {
    multiply_chain(paths, paths.size() > 5 ? std::stoll(paths[5]) : 1, ranks);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "chain_of_three: %s\n", e.what());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace shardmat

int main(int argc, char** argv) { return shardmat::run(argc, argv); }
