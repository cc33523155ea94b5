#include "runtime/run/iteration_parts.h"

#include <algorithm>

#include "comm/communicator.h"
#include "comm/exchange/sum_over_ranks.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"
#include "runtime/solvers/direct/report.h"
#include "runtime/solvers/loop/method.h"
#include "runtime/solvers/loop/preconditioner.h"
#include "runtime/solvers/loop/time_in_batches.h"

namespace shardmat {

std::vector<IterationPart> measure_iteration_parts(const Solver& solver, double seconds, std::int64_t iterations,
                                                   bool as_graph) {
  const Product& product = solver.product();
  const DistributedMatrix& matrix = product.matrix();
  Context& context = matrix.context();
  Communicator& ranks = context.communicator();
  Stream& stream = context.stream();
  const IterationCosts costs = solver.costs(iterations);
  std::vector<IterationPart> parts;
  double left = seconds;
  /// `each`: seconds, the same on all ranks; `bytes`: of one, on this rank.
  const auto add = [&](const char* name, double count, double bytes, double each) {
    parts.push_back({name, count, count * each, count * ranks.all_reduce(bytes, Reduction::max)});
    left -= count * each;
  };
  const auto measure = [&](const char* name, double count, double bytes, const auto& call) {
    if (count > 0) add(name, count, bytes, time_in_batches(product, stream, as_graph, call));
  };
  DistributedVector r(matrix, VectorLayout::rows, sum_type(matrix.type()), product.columns());
  r.fill(1, stream);
  measure("product", costs.products, static_cast<double>(product.compulsory_bytes(0)),
          [&] { product.multiply_local(1, 0, r.view(), stream); });
  if (ranks.size() > 1) {
    measure("exchange", costs.products, static_cast<double>(product.bytes_received()), [&] { product.move_x(stream); });
    const auto values = static_cast<int>(2 * product.columns());
    SumOverRanks sum(context.exchange_context(sum_type(matrix.type()), 1), values);
    Buffer zeros;
    ranks.run_agreed([&] {
      zeros = Buffer(context.device(), static_cast<std::size_t>(values) * sizeof(double));
      fill_bytes(zeros.data(), 0, zeros.bytes(), stream);
    });
    measure("sums", costs.sums, 0, [&] { sum(zeros.as<double>(), stream); });
  }
  const DirectReport* const factors = solver.preconditioner().direct();
  if (factors != nullptr && factors->solves > 0) {  // few applications, each of which may take long
    const double each = factors->solve_seconds / static_cast<double>(factors->solves);
    add("preconditioner", costs.preconditionings, 0, ranks.all_reduce(each, Reduction::max));
  } else if (costs.preconditionings > 0) {
    const DistributedVector z(matrix, VectorLayout::rows, r.type(), r.columns());
    r.fill(1, stream);
    measure("preconditioner", costs.preconditionings, static_cast<double>(solver.preconditioner().apply_bytes()),
            [&] { solver.preconditioner().apply(r.view(), z.view(), stream); });
  }
  parts.push_back({"vectors", 1, std::max(0.0, left), ranks.all_reduce(costs.vector_bytes, Reduction::max)});
  return parts;
}

}  // namespace shardmat
