// What answers of solves are checked by: the matrix itself, in this program.
//
// Threads: any; there is no shared state but Tally, which locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/matrix/csr.h"
#include "tools/bench/service/figures.h"

namespace shardmat::tools::service_bench {

/// The rows of a square matrix of f64.
class Truth {
 public:
  /// The matrix of a file or of a generator. Throws what its reader throws.
  explicit Truth(const std::string& matrix);

  std::int64_t rows() const { return rows_.rows; }
  std::span<const double> values() const { return rows_.values; }
  /// ‖b - A·x‖ / ‖b‖; 2 if x has another length or is not finite.
  double residual(std::span<const std::byte> b, std::span<const std::byte> x) const;

 private:
  HostCsr rows_;
};

/// A request for x of A·x = b, whose residual tells whether it is right. REQUIRES: `truth` and b outlive it.
Request solve_request(std::string_view target, std::span<const std::byte> b, const Truth& truth, double most_residual);

/// What became of the requests of many clients, by kind.
class Tally {
 public:
  /// The answer was right, or a refusal that is allowed. The words are those of the report: "solves".
  void right(const std::string& kind) { add(kind, &Counts::right); }
  void refused(const std::string& kind) { add(kind, &Counts::refused); }
  void wrong(const std::string& kind, const std::string& why);

  /// Right answers to this kind so far.
  std::int64_t count_right(const std::string& kind) const;
  /// Adds those of another one.
  void take(const Tally& more);
  /// Figures of all kinds, and the first things that were wrong.
  void report(Outcome& outcome) const;

 private:
  struct Counts {
    std::int64_t right = 0, refused = 0, wrong = 0;
  };
  void add(const std::string& kind, std::int64_t Counts::*which);

  mutable std::mutex mutex_;
  std::map<std::string, Counts> counts_;
  std::vector<std::string> first_;
};

}  // namespace shardmat::tools::service_bench
