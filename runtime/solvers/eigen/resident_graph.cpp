#include "runtime/solvers/eigen/resident_graph.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "kernels/base/at.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "partition/source/partitioner.h"
#include "runtime/maps/range_route.h"
#include "runtime/solvers/multigrid/take_nodes.h"
#include "runtime/source/kept_rows.h"

namespace shardmat {
namespace {

std::vector<RangeRoute::Range> ranges_of(std::span<const std::int64_t> starts) {
  std::vector<RangeRoute::Range> ranges;
  for (std::size_t p = 0; p + 1 < starts.size(); ++p) ranges.push_back({starts[p], starts[p + 1] - starts[p]});
  return ranges;
}

RangeRoute route(std::span<const std::int64_t> from, std::span<const std::int64_t> to, const Communicator& ranks) {
  return {ranges_of(from), ranges_of(to), ranks.rank()};
}

/// This rank's rows with columns, both in the order of the source. `columns`: the row that each place of x names. The
/// weights are checked here, where the original numbers of vertices are known.
HostCsr rows_in_order(DistributedMatrix& graph, const HostVector<std::int64_t>& columns,
                      const HostVector<std::int64_t>& ids_of_x, bool unweighted, const std::string& name) {
  const RowMap& map = *graph.y_rows();
  const CsrView csr = graph.host_rows(graph.context().stream());
  const HostVector<std::int64_t> rows = map.rows_by_place();
  require_host_memory(16 * csr.nnz() + 16 * csr.rows, "the rows of the graph");
  HostCsr own;
  own.rows = csr.rows, own.cols = graph.cols();
  own.row_ptr.reserve(at(csr.rows) + 1);
  own.col_idx.reserve(at(csr.nnz())), own.values.reserve(at(csr.nnz()));
  csr.col_idx.visit([&](const auto& places) {
    csr.values.visit([&](const auto& values) {
      for (const std::int64_t row : rows) {
        for (std::int64_t k = csr.row_ptr[at(row)] - csr.row_ptr[0]; k < csr.row_ptr[at(row) + 1] - csr.row_ptr[0]; ++k) {
          const auto place = static_cast<std::int64_t>(places[at(k)]);
          const auto weight = static_cast<double>(values[at(k)]);
          if (!unweighted && !(weight >= 0 && std::isfinite(weight)))
            throw Error(ErrorKind::input,
                        fmt::format("{}: the edge from vertex {} to vertex {} has the weight {:g}; a random walk needs "
                                    "finite weights of 0 or more. Load their magnitudes, or count every edge as 1",
                                    name, map.ids()[at(row)], ids_of_x[at(place)], weight),
                        "unweighted");
          own.col_idx.push_back(columns[at(place)]);
          own.values.push_back(weight);
        }
        own.row_ptr.push_back(std::ssize(own.col_idx));
      }
    });
  });
  sort_rows_and_sum_duplicates(own);  // there are none, so it sorts only
  return own;
}

}  // namespace

Transition transition_of(DistributedMatrix& graph, bool unweighted, const std::string& name) {
  Communicator& ranks = graph.context().communicator();
  ranks.run_agreed([&] {
    if (graph.rows() != graph.cols())
      throw Error(ErrorKind::usage,
                  fmt::format("a graph needs a square matrix; {} is {} × {}", name, graph.rows(), graph.cols()));
  });
  const HostVector<std::int64_t> ids_of_x = graph.column_ids(), columns = multigrid::rows_of_columns(graph);
  const HostCsr own = ranks.run_agreed([&] { return rows_in_order(graph, columns, ids_of_x, unweighted, name); });
  HostVector<std::int64_t> lengths(at(own.rows));
  for (std::int64_t i = 0; i < own.rows; ++i) lengths[at(i)] = own.row_ptr[at(i) + 1] - own.row_ptr[at(i)];
  // To even shares, which transposed() reads.
  const std::vector<std::int64_t> shares = even_starts(graph.rows(), ranks.size());
  const RangeRoute of_rows = route(graph.y_rows()->starts(), shares, ranks);
  KeptRows kept;
  kept.name = name, kept.rows = graph.rows(), kept.node_block_size = 1;
  kept.begin = kept.share_begin = shares[at(ranks.rank())];
  kept.share_lengths = of_rows.bring<std::int64_t>(lengths, 1, ranks);
  kept.part.rows = std::ssize(kept.share_lengths), kept.part.cols = graph.cols();
  kept.part.row_ptr.resize(kept.share_lengths.size() + 1);
  std::partial_sum(kept.share_lengths.begin(), kept.share_lengths.end(), kept.part.row_ptr.begin() + 1);
  const RangeRoute of_entries = of_rows.of_items(own.row_ptr, kept.part.row_ptr);
  kept.part.col_idx = of_entries.bring<std::int64_t>(own.col_idx, 1, ranks);
  kept.part.values = of_entries.bring<double>(own.values, 1, ranks);
  MatrixSource source;
  ranks.run_agreed([&] { source.rows = make_kept_source(std::move(kept)); });
  source.access = "kept by the ranks";
  return transition_matrix(source, {unweighted, "nnz"}, ranks);
}

void move_own(const DistributedVector& from, DistributedVector& to) {
  Context& context = from.context();
  Communicator& ranks = context.communicator();
  const RangeRoute way = route(from.map()->starts(), to.map()->starts(), ranks);
  const HostVector<double> values = ranks.run_agreed([&] { return from.own(context.stream()); });
  const HostVector<double> moved = way.bring<double>(values, from.columns(), ranks);
  ranks.run_agreed([&] { to.set_own(moved, context.stream()); });
}

}  // namespace shardmat
