#include "runtime/solvers/loop/true_residual.h"

#include <cmath>

#include "comm/communicator.h"
#include "kernels/krylov/residual.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"

namespace shardmat {
namespace {

DistributedVector vector_of(const Product& product) {
  return {product.matrix(), VectorLayout::rows, sum_type(product.matrix().type()), product.columns()};
}

}  // namespace

TrueResidual::TrueResidual(const Product& product, const krylov::Passes& passes, SumOverRanks& sum)
    : product_(product),
      passes_(passes),
      sum_(sum),
      x_(vector_of(product)),
      r_(vector_of(product)),
      slot_(vector_of(product)) {
  Context& context = product.matrix().context();
  context.communicator().run_agreed(
      [&] { sums_ = Buffer(context.device(), static_cast<std::size_t>(2 * product.columns()) * sizeof(double)); });
}

std::vector<double> TrueResidual::operator()(Method& method, std::int64_t taken, const DistributedVector& b,
                                             const DistributedVector& x, Stream& stream) {
  const std::size_t bytes = product_.y_bytes();
  const void* const slot = product_.x().data;  // methods keep a vector there from one iteration to the next
  copy_on_device(slot_.view().data, slot, bytes, stream);
  copy_on_device(x_.view().data, x.view().data, bytes, stream);
  method.add_correction(taken, x_.view().data, stream);
  copy_on_device(r_.view().data, b.view().data, bytes, stream);
  product_.multiply(-1, x_.view(), 1, r_.view(), stream);
  copy_on_device(product_.x().data, slot_.view().data, bytes, stream);
  return norms(r_, stream);
}

std::vector<double> TrueResidual::norms(const DistributedVector& v, Stream& stream) {
  const auto columns = static_cast<std::size_t>(product_.columns());
  dispatch(v.type(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    passes_.run(krylov::ResidualSums<T, krylov::Scaling::none>{{static_cast<T*>(v.view().data), nullptr, nullptr},
                                                               krylov::Norm::unpreconditioned,
                                                               sums_.as<double>(),
                                                               sums_.as<double>() + columns},
                v.local_rows(), stream);
  });
  sum_(sums_.as<double>(), stream);
  product_.wait(stream);
  std::vector<double> squares(columns);
  copy_to_host(squares.data(), sums_.as<double>() + columns, columns * sizeof(double), stream);
  for (double& square : squares) square = std::sqrt(square);
  return squares;
}

}  // namespace shardmat
