// Repeated products and power iteration, timed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/progress.h"
#include "runtime/context.h"
#include "runtime/matrix/product.h"
#include "runtime/over_ranks.h"

namespace shardmat {

enum class Mode {
  repeat,  ///< the same product y = αAx + βy again and again
  dots,  ///< the product, then xᵀy, then yᵀy, each summed over the ranks: a step of conjugate gradients without its vector
         ///< updates; square matrices only
  power,  ///< x ← y / ‖y‖₂ between products; square matrices only
};

struct IterateOptions {
  Mode mode = Mode::repeat;
  std::int64_t iterations = 1;
  double alpha = 1, beta = 0;
  bool graph = true;  ///< record iterations and replay them where the exchange allows
  Progress progress;
};

/// Seconds of one iteration over the ranks: each iteration costs what its slowest rank takes.
struct IterationTimes {
  std::int64_t iterations = 0;
  std::int64_t together = 1;  ///< each time is the mean of so many
  double median = 0, min = 0, max = 0, mean = 0;
  OverRanks of_ranks;  ///< of each rank's own median: what is between mean and max is lost because ranks differ
};

/// What dot products and power iteration find out about a matrix; zeros in other modes.
struct IterationEstimate {
  double xy = 0, yy = 0;  ///< dots: xᵀy and yᵀy
  double eigenvalue = 0;  ///< power: Rayleigh quotient xᵀAx / xᵀx of the last x
  double residual = 0;    ///< power: ‖Ax - λx‖₂ / |λ| of the last x, infinite if λ is 0 and Ax is not
};

struct IterateResult {
  IterationTimes iteration;                  ///< exchange and product (dots: and two dot products; power: and normalisation)
  IterationTimes local;                      ///< the product alone
  IterationTimes exchange;                   ///< the exchange alone
  std::vector<IterationEstimate> estimates;  ///< one a matrix
  std::string sums;                          ///< dots, power: how they are summed over the ranks (SumOverRanks::name())
  bool graph = false;                        ///< iterations were replayed from a recorded graph
};

std::string_view name(Mode mode);

/// A product whose X lies in product->x(), and its Y.
struct Iterated {
  const Product* product;
  Dense y;
};

/// Collective over `ranks`. An iteration runs each product once, in turn; they are all of `context`, whose ranks may be this
/// one alone, and a rank may have none. Each Y is overwritten. In power mode each x is left normalised.
IterateResult iterate(Communicator& ranks, Context& context, std::span<const Iterated> several,
                      const IterateOptions& options);
/// One product on all ranks of its context.
IterateResult iterate(const Product& product, const Dense& y, const IterateOptions& options);

}  // namespace shardmat
