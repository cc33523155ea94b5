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
#include "tools/bench/result_table.h"
#include "tools/bench/trial.h"

namespace shardmat::tools {

class GmresTable {
 public:
  /// `communicator`: of this process alone; outlives this. `most_iterations`: of a solve.
  GmresTable(Communicator& communicator, Backend backend, std::int64_t most_iterations);

  /// Solves with each format, in f64. `trial`: the matrix on this device in f64. Does nothing unless it is square and has
  /// rows. Formats for which there is no memory get a row without figures.
  void measure(const std::string& name, const std::shared_ptr<const HostCsr>& matrix, Trial& trial);
  ResultTable table() const;

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
  void add_rows(const std::string& name, const HostCsr& matrix, Backend backend, const std::vector<Solved>& solved,
                const std::vector<Solved>* on_host);
  static const std::vector<Format>& formats();

  Communicator& communicator_;
  std::unique_ptr<Context> context_, host_context_;  ///< the second one only if the first is on a GPU
  std::int64_t most_iterations_;
  ResultTable table_;
  std::vector<std::vector<double>> gains_;  ///< of each format on this device: the share of time that packing saves
};

}  // namespace shardmat::tools
