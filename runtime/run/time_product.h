// Times a product after a run, for the report.
#pragma once

#include <algorithm>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/timer.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"

namespace shardmat {

struct ProductSeconds {
  double product = 0;   ///< without its exchange
  double exchange = 0;  ///< 0 with one rank
};

/// Medians of some repetitions, of the slowest rank. Overwrites the product's x() and takes another Y. Collective.
inline ProductSeconds time_product(const Product& product, Stream& stream) {
  constexpr int kRepetitions = 11;
  const DistributedMatrix& matrix = product.matrix();
  Communicator& ranks = matrix.context().communicator();
  const auto time = [&](const auto& call) {
    std::vector<double> seconds;
    for (int i = 0; i <= kRepetitions; ++i) {  // the first one warms up
      const Timer timer;
      call();
      product.wait(stream);
      if (i > 0) seconds.push_back(timer.seconds());
    }
    std::nth_element(seconds.begin(), seconds.begin() + kRepetitions / 2, seconds.end());
    return ranks.all_reduce(seconds[kRepetitions / 2], Reduction::max);
  };
  const DistributedVector y(matrix, VectorLayout::rows, sum_type(matrix.type()), product.columns());
  ProductSeconds result;
  result.product = time([&] { product.multiply_local(1, 0, y.view(), stream); });
  if (ranks.size() > 1) result.exchange = time([&] { product.move_x(stream); });
  return result;
}

}  // namespace shardmat
