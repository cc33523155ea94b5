#include "runtime/solvers/loop/symmetry.h"

#include <algorithm>
#include <cmath>

#include "comm/communicator.h"
#include "kernels/krylov/preconditioner_steps.h"
#include "kernels/matrix/symmetry.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/held_rows.h"
#include "runtime/matrix/row_plan.h"
#include "runtime/solvers/loop/first_column_dot.h"
#include "runtime/solvers/loop/random_entries.h"

namespace shardmat {
namespace {

constexpr int kPairs = 3;

}  // namespace

double sum_of_magnitudes(const Product& product, Stream& stream) {
  if (product.held() != nullptr) return product.held()->magnitudes();
  const DistributedMatrix& matrix = product.matrix();
  Communicator& ranks = matrix.context().communicator();
  double sum = 0;
  ranks.run_agreed([&] {
    const krylov::Passes passes(matrix.context().device(), 1);
    const Buffer on_device(matrix.context().device(), sizeof(double));
    for (const RowPlan& plan : product.row_plans())
      for (const Buffer* array : plan.storage().value_arrays()) {
        double more = 0;
        dispatch(matrix.type(), [&]<class Tag>(Tag) {
          using T = typename Tag::type;
          passes.run(krylov::Magnitudes<T>{array->as<T>(), on_device.as<double>()},
                     static_cast<std::int64_t>(array->bytes() / sizeof(T)), stream);
        });
        copy_to_host(&more, on_device.data(), sizeof more, stream);
        sum += more;
      }
  });
  return ranks.all_reduce(sum, Reduction::sum);
}

SymmetryProbe probe_symmetry(const Product& product, Stream& stream) {
  const DistributedMatrix& matrix = product.matrix();
  const std::int64_t columns = product.columns();
  const ValueType type = sum_type(matrix.type());
  DistributedVector x(matrix, VectorLayout::rows, type, columns), y(matrix, VectorLayout::rows, type, columns),
      product_of(matrix, VectorLayout::rows, type, columns);
  FirstColumnDot dot(matrix.context(), columns, [&] { product.wait(stream); });
  const auto form = [&](const DistributedVector& left, const DistributedVector& right) {
    product.multiply(1, right.view(), 0, product_of.view(), stream);
    return dot(left, product_of, stream);
  };
  SymmetryProbe probe;
  probe.scale = sum_of_magnitudes(product, stream);
  for (std::uint64_t pair = 0; pair < kPairs; ++pair) {
    fill_random(x, 2 * pair + 1, Entries::signs, stream);
    fill_random(y, 2 * pair + 2, Entries::fractions, stream);
    product.clear_held(x.view(), stream);
    product.clear_held(y.view(), stream);
    probe.difference = std::max(probe.difference, std::abs(form(x, y) - form(y, x)));
  }
  probe.symmetric = !(probe.difference > symmetry_tolerance(type) * probe.scale);
  return probe;
}

}  // namespace shardmat
