#include "runtime/solvers/loop/square_underflow.h"

#include <algorithm>
#include <vector>

#include "comm/communicator.h"
#include "kernels/vector.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/distributed_vector.h"
#include "runtime/matrix/product.h"

namespace shardmat {
namespace {

/// The sums of the squares of all columns times a number so large that no entry but 0 has the square 0.
std::vector<double> enlarged_squares(const DistributedVector& vector, const Product& product, Stream& stream) {
  constexpr double kLarge = 0x1p600;
  Context& context = vector.context();
  DistributedVector enlarged(vector.map(), vector.type(), vector.columns());
  VectorSums sums(context, vector.columns());
  std::vector<double> squares(static_cast<std::size_t>(vector.columns()));
  Buffer on_device;
  context.communicator().run_agreed([&] { on_device = Buffer(context.device(), squares.size() * sizeof(double)); });
  combine(vector.type(), vector.local_rows(), vector.columns(), {kLarge}, vector.view().data, {0}, enlarged.view().data,
          stream);
  sums.dot(enlarged, enlarged, on_device.as<double>(), stream);
  product.wait(stream);
  copy_to_host(squares.data(), on_device.data(), squares.size() * sizeof(double), stream);
  return squares;
}

}  // namespace

bool squares_underflow(const DistributedVector& vector, std::span<const double> squares, const Product& product,
                       Stream& stream) {
  const double least = smallest_square(vector.type());
  if (std::any_of(squares.begin(), squares.end(), [&](double square) { return square > 0 && square < least; })) return true;
  const bool has_zero = std::any_of(squares.begin(), squares.end(), [](double square) { return square == 0; });
  if (!has_zero || vector.type() == ValueType::f32) return false;  // f64 holds the squares of all numbers of f32
  const std::vector<double> enlarged = enlarged_squares(vector, product, stream);
  for (std::size_t j = 0; j < enlarged.size(); ++j)
    if (squares[j] == 0 && enlarged[j] != 0) return true;
  return false;
}

}  // namespace shardmat
