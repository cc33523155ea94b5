// Paper 5's GMRES (Algorithm 1, Figs. 5, 8 and 9): the whole time of a solve with each format and its row block packing
// inside, on this device and, if that is a GPU, on the host.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "kernels/matrix/csr.h"
#include "runtime/context/context.h"
#include "tools/bench/papers/paper.h"
#include "tools/bench/result_table.h"
#include "tools/bench/trial.h"

namespace shardmat::tools {

/// The paper solves with at most 1000 iterations; it names neither tolerance nor restart.
struct GmresSettings {
  std::int64_t most_iterations = 1000, restart = 30;
  double tolerance = 1e-8;  ///< of the norm of b
};

class GmresTable {
 public:
  /// `communicator`: of this process alone; outlives this.
  GmresTable(Communicator& communicator, Backend backend, const GmresSettings& settings);

  /// Solves with each format, in f64. `trial`: the matrix on this device in f64. Does nothing unless it is square and has
  /// rows. Formats for which there is no memory get a row without figures.
  void measure(const std::string& name, const std::shared_ptr<const HostCsr>& matrix, Trial& trial);
  /// paper_5_gmres (every solve), paper_5_gmres_means (beside what the text prints).
  Paper::Tables tables() const { return {{"paper_5_gmres", table_}, {"paper_5_gmres_means", means()}}; }

 private:
  struct Solved {
    std::string reason;
    std::int64_t iterations = 0;
    double residual = 0;                                       ///< true, of the norm of b
    double convert = 0, transfer = 0, product = 0, solve = 0;  ///< seconds
    double whole() const { return convert + transfer + solve; }
  };
  struct Format {
    std::string name, kernel;
    std::optional<std::size_t> packs;  ///< the format that it packs, by its place
  };

  std::vector<Solved> solve_all(Context& context, const std::shared_ptr<const HostCsr>& matrix, Trial& trial) const;
  Solved solve(Context& context, const std::shared_ptr<const HostCsr>& matrix, Trial& trial, const Format& format) const;
  /// Adds to the means what the formats take on this device.
  void add_to_means(const std::vector<Solved>& here, const std::vector<Solved>* on_host);
  ResultTable means() const;
  void add_rows(const std::string& name, const HostCsr& matrix, Backend backend, const std::vector<Solved>& solved,
                const std::vector<Solved>* on_host);
  static const std::vector<Format>& formats();

  Communicator& communicator_;
  std::unique_ptr<Context> context_, host_context_;  ///< the second one only if the first is on a GPU
  GmresSettings settings_;
  ResultTable table_;
  /// Of a format on this device, a figure a matrix: shares of time and of transfer that packing saves, the share of the
  /// whole time that the transfer takes, and time on the host over time here.
  struct Figures {
    std::vector<double> gains, transfer_saved, transfer_shares, over_host;
  };
  std::vector<Figures> figures_;
};

}  // namespace shardmat::tools
