// Repeated products and power iteration, timed.
//
// Threads: one thread of each rank; iterate() is collective.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/progress.h"
#include "runtime/context/context.h"
#include "runtime/matrix/product.h"
#include "runtime/timing/iteration_times.h"

namespace shardmat {

struct IterateOptions {
  Mode mode = Mode::repeat;
  std::int64_t iterations = 1;
  double alpha = 1, beta = 0;
  bool graph = true;  ///< record iterations in a graph and replay it, if the exchange allows that
  Progress progress;
};

struct IterateResult {
  IterationTimes iteration;                  ///< exchange and product (dots: + two dot products; power: + normalisation)
  IterationTimes local;                      ///< the product alone
  IterationTimes exchange;                   ///< the exchange alone
  std::vector<IterationEstimate> estimates;  ///< one for each matrix
  std::string sums;                          ///< dots, power: what sums over the ranks (SumOverRanks::name())
  bool graph = false;                        ///< true if iterations were replayed from a recorded graph
};

/// A product and its Y. X lies in product->x().
struct Iterated {
  const Product* product;
  Dense y;
};

/// Collective over `ranks`. An iteration runs each product once, one after the other. All products belong to `context`,
/// which may have this rank only; `several` may be empty on a rank. Each Y is overwritten. In power mode each x ends
/// normalised.
IterateResult iterate(Communicator& ranks, Context& context, std::span<const Iterated> several,
                      const IterateOptions& options);
/// The same for one product, on all ranks of its context.
IterateResult iterate(const Product& product, const Dense& y, const IterateOptions& options);

}  // namespace shardmat
