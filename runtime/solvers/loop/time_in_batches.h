// Times a part of an iteration as a solve runs it: again and again without a wait.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include "comm/communicator.h"
#include "kernels/base/timer.h"
#include "runtime/context/context.h"
#include "runtime/matrix/distributed_matrix.h"
#include "runtime/matrix/product.h"

namespace shardmat {

/// Seconds of one `call`, which puts work on the stream: the least mean of some batches, of the slowest rank. A batch has 1
/// to 16 calls, of some 5 ms in all. `as_graph`: on a GPU a batch is replayed from a graph. Collective.
template <class F>
double time_in_batches(const Product& product, Stream& stream, bool as_graph, const F& call) {
  constexpr int kBatches = 5, kMostCalls = 16;
  constexpr double kSecondsOfABatch = 5e-3;
  Communicator& ranks = product.matrix().context().communicator();
  const auto seconds_of = [&](const auto& work) {
    const Timer timer;
    work();
    product.wait(stream);
    return timer.seconds();
  };
  seconds_of(call);  // libraries connect on first use, which a recording forbids
  const double once = ranks.all_reduce(seconds_of(call), Reduction::max);
  const int calls = static_cast<int>(std::clamp(kSecondsOfABatch / std::max(once, 1e-9), 1.0, double{kMostCalls}));
  const auto batch = [&] {
    for (int i = 0; i < calls; ++i) call();
  };
  std::optional<Graph> graph;
  if (as_graph && stream.device().backend == Backend::cuda) graph.emplace(stream, batch);
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kBatches; ++i)
    least = std::min(least, seconds_of([&] {
                       if (graph) graph->launch(stream);
                       else batch();
                     }));
  return ranks.all_reduce(least / calls, Reduction::max);
}

}  // namespace shardmat
