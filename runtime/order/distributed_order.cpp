#include "runtime/order/distributed_order.h"

#include <fmt/format.h>

#include "kernels/base/error.h"

#ifdef SHARDMAT_HAVE_PTSCOTCH
#include <ptscotch.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include "comm/items_by_rank.h"
#include "comm/mpi_session.h"
#include "comm/run_while_checking_ranks.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/text.h"
#include "partition/source/partitioner.h"
#include "runtime/order/distributed_graph.h"
#include "runtime/order/find_node_blocks.h"
#endif

namespace shardmat {

#ifdef SHARDMAT_HAVE_PTSCOTCH

namespace {

// Shards are cut where nonzeros balance, and where that is beside the end of a part, rows are cut off from their neighbours:
// so parts are balanced as well as PT-Scotch can. A looser imbalance leaves it no better cuts.
constexpr SCOTCH_Num kStrategy = SCOTCH_STRATBALANCE;
constexpr double kImbalance = 0.01;

using Numbers = HostVector<SCOTCH_Num>;

/// The graph as PT-Scotch takes it, a vertex weighing as much as its row has nonzeros.
struct ScotchGraph {
  Numbers first, neighbour, weight;
};

/// PT-Scotch holds sums over the whole graph in its integers.
void require_countable(std::int64_t edges, std::int64_t weight) {
  if (SCOTCH_numSizeof() != sizeof(SCOTCH_Num))
    throw Error(ErrorKind::internal, fmt::format("the PT-Scotch that was loaded has integers of {} bytes, its header {}",
                                                 SCOTCH_numSizeof(), sizeof(SCOTCH_Num)));
  if (std::max(edges, weight) > std::numeric_limits<SCOTCH_Num>::max())
    throw Error(ErrorKind::resources,
                fmt::format("the graph of the matrix has {} neighbours, more than this PT-Scotch counts; build with one of "
                            "64-bit integers",
                            human_count(edges)));
}

ScotchGraph scotch_graph(const RowShare& share, Communicator& communicator) {
  const GraphShare graph = graph_of(share, communicator);
  ScotchGraph result;
  std::int64_t sums[] = {std::ssize(graph.neighbour), 0};
  communicator.run_agreed([&] {
    // PT-Scotch copies the graph, coarsens it and holds a half of it for each bisection.
    require_host_memory(static_cast<std::int64_t>(sizeof(SCOTCH_Num)) * (12 * share.rows() + 4 * sums[0]),
                        "partitioning the graph of the matrix");
    result.neighbour.reserve(1);  // null would mean something else than no neighbours
    result.first.assign(graph.first.begin(), graph.first.end());
    result.neighbour.assign(graph.neighbour.begin(), graph.neighbour.end());
    result.weight.assign(share.lengths.begin(), share.lengths.end());
    for (SCOTCH_Num& weight : result.weight) sums[1] += weight = std::max<SCOTCH_Num>(weight, 1);  // it divides by their sum
  });
  communicator.all_reduce(std::span<std::int64_t>(sums), Reduction::sum);
  communicator.run_agreed([&] { require_countable(sums[0], sums[1]); });
  return result;
}

void check(int status, const char* what) {
  if (status != 0)
    throw Error(ErrorKind::resources, fmt::format("PT-Scotch could not {}; is there enough memory? Use more hosts", what));
}

/// Calls PT-Scotch, which waits for the other ranks as long as it takes.
Numbers partition_graph(ScotchGraph graph, MPI_Comm ranks, int parts) {
  struct Partitioning {
    explicit Partitioning(MPI_Comm ranks) {
      check(SCOTCH_dgraphInit(&graph, ranks), "begin");
      SCOTCH_stratInit(&strategy);
    }
    ~Partitioning() {
      SCOTCH_stratExit(&strategy);
      SCOTCH_dgraphExit(&graph);
    }
    SCOTCH_Dgraph graph;
    SCOTCH_Strat strategy;
  };
  int size = 0;
  MPI_Comm_size(ranks, &size);
  const auto vertices = static_cast<SCOTCH_Num>(graph.weight.size()),
             edges = static_cast<SCOTCH_Num>(graph.neighbour.size());
  Numbers part(graph.weight.size());
  Partitioning work(ranks);
  SCOTCH_randomReset();
  check(SCOTCH_stratDgraphMapBuild(&work.strategy, kStrategy, size, parts, kImbalance), "choose how to partition");
  check(SCOTCH_dgraphBuild(&work.graph, 0, vertices, vertices, graph.first.data(), graph.first.data() + 1,
                           graph.weight.data(), nullptr, edges, edges, graph.neighbour.data(), nullptr, nullptr),
        "take the graph of the matrix");
  check(SCOTCH_dgraphPart(&work.graph, parts, &work.strategy, part.data()), "partition the graph of the matrix");
  return part;
}

/// Where rows with these parts go. Each rank adds up some of the parts over all ranks.
HostVector<std::int64_t> positions(const Numbers& part, Communicator& communicator, int parts) {
  ItemsByRank<std::int64_t> rows_of_parts;
  HostVector<std::int64_t> result;
  communicator.run_agreed([&] {
    require_host_memory(8 * (2 * std::int64_t{parts} + std::ssize(part)), "the new positions of rows");
    const auto starts = even_starts(parts, communicator.size());
    for (std::size_t p = 0; p + 1 < starts.size(); ++p) rows_of_parts.counts.push_back(starts[p + 1] - starts[p]);
    rows_of_parts.items.assign(static_cast<std::size_t>(parts), 0);
    for (const SCOTCH_Num p : part) ++rows_of_parts.items[static_cast<std::size_t>(p)];
    result.resize(part.size());
  });
  ItemsByRank<std::int64_t> mine = send_items(communicator, rows_of_parts);
  const auto before = communicator.all_gather(std::accumulate(mine.items.begin(), mine.items.end(), std::int64_t{0}));
  std::int64_t next = std::accumulate(before.begin(), before.begin() + communicator.rank(), std::int64_t{0});
  const auto own_parts = static_cast<std::size_t>(mine.counts[0]);
  for (std::size_t p = 0; p < own_parts; ++p)
    for (std::size_t i = p; i < mine.items.size(); i += own_parts) next += std::exchange(mine.items[i], next);
  HostVector<std::int64_t> first_of_part = send_items(communicator, mine).items;
  for (std::size_t i = 0; i < part.size(); ++i) result[i] = first_of_part[static_cast<std::size_t>(part[i])]++;
  return result;
}

/// Collective. Rows of a node go where its first row goes.
void keep_nodes_whole(Numbers& part, const RowShare& share, Communicator& communicator) {
  const std::int64_t known = share.source.node_block_size();
  const std::int64_t size = known > 1 ? known : find_node_block_size(share.source, share.begin, share.end, communicator);
  if (size == 1 || communicator.all_reduce(share.rows() < size ? 1 : 0, Reduction::max) == 1) return;
  const auto first_of = [&](std::int64_t row) { return row / size * size; };
  // The last node of this share may go on in the next.
  const std::int64_t last = std::max(share.begin, first_of(share.end - 1));
  const std::vector<std::int64_t> of_last =
      communicator.all_gather(static_cast<std::int64_t>(part[static_cast<std::size_t>(last - share.begin)]));
  for (std::int64_t row = share.begin; row < share.end; ++row) {
    const std::int64_t first = first_of(row);
    part[static_cast<std::size_t>(row - share.begin)] =
        first >= share.begin ? part[static_cast<std::size_t>(first - share.begin)]
                             : static_cast<Numbers::value_type>(of_last[static_cast<std::size_t>(communicator.rank()) - 1]);
  }
}

}  // namespace

bool built_with_ptscotch() { return true; }

HostVector<std::int64_t> order_by_graph(const RowShare& share, Communicator& communicator, int parts) {
  Numbers part(share.lengths.size(), 0);
  if (parts > 1 && share.source.rows() >= communicator.size()) {
    communicator.run_agreed([] { require_mpi_threads(); });
    ScotchGraph graph = scotch_graph(share, communicator);
    const Communicator others = communicator.duplicate(communicator.timeout_seconds());
    setenv("SCOTCH_PTHREAD_NUMBER", "1", 0);  // with more its answers vary from run to run, and it pins them to cores
    part = run_while_checking_ranks(communicator, [&] { return partition_graph(std::move(graph), others.native(), parts); });
  }
  keep_nodes_whole(part, share, communicator);
  return positions(part, communicator, parts);
}

#else

bool built_with_ptscotch() { return false; }

HostVector<std::int64_t> order_by_graph(const RowShare&, Communicator& communicator, int) {
  communicator.run_agreed([] {
    throw Error(ErrorKind::usage,
                "this build has no PT-Scotch to partition graphs on several ranks; install libptscotch-dev and build again, "
                "or start one process without mpirun");
  });
  return {};
}

#endif

}  // namespace shardmat
