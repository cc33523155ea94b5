// One batch in one type on one device, with everything that measuring products of it shares: its arrays there, X and Y, and
// what some rows of Y must be.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/batched/batched_tuner.h"
#include "tools/bench/batched_peers.h"
#include "tools/bench/repeated_table.h"
#include "tools/bench/trial.h"

namespace shardmat::tools {

/// One way to multiply the batch. Times are of one product, null where they mean nothing; caches are warm unless said.
struct BatchedResult {
  std::string method;   ///< "auto", a kernel, a peer
  std::string heading;  ///< of columns
  std::string choice;   ///< kernel and policy, algorithms
  bool own = false;
  std::string refused;                 ///< why there are no times; empty if there are
  std::int64_t wrong = 0;              ///< entries of the rows looked at
  std::string wrong_choices;           ///< ways of a peer that gave wrong results; not chosen where another is right
  std::optional<Timing> plain;         ///< as calls on a stream, back to back: with the gaps that launching leaves
  std::optional<Timing> graph;         ///< on the device alone: recorded once and replayed, back to back
  std::optional<Timing> plain_placed;  ///< as plain, with the copy of descriptors or pointers to the device before each
  std::optional<Timing> graph_placed;  ///< as graph, likewise
  std::optional<Timing> cold;          ///< on the device, alone, caches flushed before
};

class BatchedTrial {
 public:
  /// The batch and the stream live as long as this. options.flush: measure with flushed caches, too.
  BatchedTrial(const BatchView& batch, ValueType type, Stream& stream, const TrialOptions& options);

  /// Makes X and Y for so many columns. Throws Error(resources) before allocating if they do not fit.
  void prepare(std::int64_t columns);
  /// A kernel by name, with the policy that is the fastest of its own; or "auto". It throws what choose_batched_plan() does.
  BatchedResult measure(const std::string& kernel);
  /// The fastest right one of the ways to do it.
  BatchedResult measure(const PeerKind& peer);
  /// A copy on the device that moves as many bytes as a product must, in place of a product.
  BatchedResult measure_copy();
  std::int64_t compulsory_bytes() const { return csr_->compulsory_bytes(columns_); }

 private:
  struct Method {
    std::function<void()> multiply, place;  ///< place: null if there is nothing to copy
    bool plain = true;
    int in_graph = 1;
  };

  std::shared_ptr<const DeviceBatch> batch_in(BatchFormat format);
  void compute_expected();
  std::int64_t count_wrong();
  void measure(const Method& method, BatchedResult& result);
  /// Products to time at once, so that the resolution of events does not show.
  int together(const std::function<void()>& product);
  Timing mean_of(int products, const std::function<void()>& work);
  Timing on_stream(const std::function<void()>& product);
  /// A graph has at most so many products.
  Timing in_graph(const std::function<void()>& product, int most);
  Timing from_cold(const Method& method);

  BatchView batch_;
  ValueType type_;
  Stream& stream_;
  TrialOptions options_;
  RepeatedTable table_;  ///< what X holds
  std::shared_ptr<const DeviceBatch> csr_, coo_;
  std::int64_t columns_ = 0, row_step_ = 1;
  std::vector<double> expected_, bound_;  ///< of every row_step_-th row
  Buffer x_, y_;
  HostBuffer host_y_;
};

}  // namespace shardmat::tools
