// What `bench batched` found, as text and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "partition/batched/batch_source.h"
#include "tools/bench/batched_trial.h"
#include "tools/bench/machine.h"

namespace shardmat::tools {

/// How a product is timed: the same data again and again; with its descriptors copied to the device each time, as the paper
/// counts it; alone with flushed caches.
enum class Way { warm, placed, cold };

/// One batch in one type with one number of columns.
struct BatchedCase {
  std::string figure;  ///< of the paper, as "7a"; "large"; or the source
  std::string source;
  BatchTotals batch;
  ValueType type = ValueType::f32;
  std::int64_t rhs = 0, compulsory_bytes = 0;
  std::vector<BatchedResult> results;
  BatchedResult copy;  ///< of as many bytes

  /// What the automatic choice takes; without one the fastest of our kernels. Null if nothing was measured or it is wrong.
  const BatchedResult* ours() const;
  /// The definition of the paper: twice the nonzeros times the columns.
  double flops() const { return 2.0 * static_cast<double>(batch.nnz) * static_cast<double>(rhs); }
};

struct BatchedReport {
  Machine machine;
  int repetitions = 0;
  bool cold = false, verified = true;
  std::vector<BatchedCase> cases;
  std::vector<std::string> notes;  ///< what was not measured for want of memory

  /// The host copies no descriptors.
  std::vector<Way> ways() const;
};

/// Tables of cases that differ in the number of columns only.
std::string figure_text(const BatchedReport& report, std::span<const BatchedCase> cases);
std::string summary_text(const BatchedReport& report);
nlohmann::ordered_json to_json(const BatchedReport& report);
/// Wrong results of all cases.
std::int64_t count_wrong(const BatchedReport& report);

}  // namespace shardmat::tools
