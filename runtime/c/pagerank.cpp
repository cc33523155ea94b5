#include <algorithm>
#include <functional>
#include <utility>

#include "kernels/matrix/csr.h"
#include "partition/files/file_digest.h"
#include "partition/source/row_source.h"
#include "runtime/c/handles.h"
#include "runtime/context/context_scope.h"
#include "runtime/shared_gpu/answer_bytes.h"

namespace shardmat::c {
namespace {

PageRankSettings settings(const shardmat_pagerank_options& given) {
  PageRankSettings made;
  if (given.damping != 0) made.damping = given.damping;
  if (given.tolerance != 0) made.tolerance = given.tolerance;
  if (given.max_iterations != 0) made.max_iterations = given.max_iterations;
  if (given.columns != 0) made.columns = given.columns;
  return made;
}

/// Rows of the whole graph as a source, sorted and checked.
MatrixSource source_of(const OwnRows& given) {
  require(given.device.backend == Backend::host, "the rows of a graph must lie in host memory");
  require(given.range.first == 0 && given.range.count == given.cols, "a graph needs all rows of a square matrix");
  auto graph = std::make_shared<HostCsr>();
  graph->rows = given.range.count, graph->cols = given.cols;
  graph->row_ptr.assign(given.row_ptr.begin(), given.row_ptr.end());
  for (std::int64_t& offset : graph->row_ptr) offset -= given.row_ptr[0];
  graph->col_idx.assign(given.columns.begin(), given.columns.end());
  graph->values.resize(given.columns.size());
  dispatch(given.values.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::copy_n(static_cast<const T*>(given.values.data), given.columns.size(), graph->values.begin());
  });
  for (std::size_t i = 0; i < static_cast<std::size_t>(graph->rows); ++i)
    if (graph->row_ptr[i] > graph->row_ptr[i + 1]) throw Error(ErrorKind::input, "row_ptr must ascend");
  for (const std::int64_t column : graph->col_idx)
    if (column < 0 || column >= graph->cols)
      throw Error(ErrorKind::input, "the graph has an edge to a vertex that is not there");
  sort_rows_and_sum_duplicates(*graph);
  MatrixSource source;
  source.rows = make_memory_source(graph, "the graph");
  source.access = "given";
  return source;
}

/// What a run found, on all ranks alike.
struct Ranked {
  bool converged = false;
  std::int64_t iterations = 0, dangling = 0;
  double change = 0, seconds = 0;
};

/// The graph of the caller.
struct Graph {
  std::function<void()> check;                       ///< throws on this rank what is wrong with the arguments
  std::function<MatrixSource(Context&, bool)> open;  ///< the source for the partition "rows"; the flag: unweighted
  const char* file = nullptr;
};

/// On the ranks that own a device.
Ranked run(Context& context, const Graph& of, bool unweighted, const PageRankSettings& chosen, Monitor& monitor,
           const double* restarts, double* scores) {
  const ContextScope scope(context);
  Communicator& ranks = context.communicator();
  const MatrixSource graph = of.open(context, unweighted);
  const Transition transition = transition_matrix(graph, {unweighted, "nnz"}, ranks);
  LoadOptions load;
  load.right_hand_sides = chosen.columns;
  DistributedMatrix links(transition.links, context, load);
  PageRank pagerank(links, chosen);
  Stream& stream = context.stream();
  DistributedVector found(links, VectorLayout::rows, ValueType::f64, chosen.columns);
  std::optional<DistributedVector> v;
  if (ranks.all_reduce(restarts != nullptr ? 1 : 0, Reduction::max) == 1) {
    const auto entries = static_cast<std::size_t>(links.rows() * chosen.columns);
    v.emplace(links, VectorLayout::rows, ValueType::f64, chosen.columns);
    v->scatter(restarts == nullptr || ranks.rank() != 0 ? std::span<const double>() : std::span(restarts, entries), stream);
  }
  const PageRankResult done = pagerank.run(
      v ? &*v : nullptr, found, [&](std::int64_t n, const std::vector<double>& changes) { monitor(n, changes); },
      [&] { return monitor.ended; });
  const HostVector<double> all = found.gather(stream);
  std::copy(all.begin(), all.end(), scores);
  Ranked result{done.converged(), done.iterations, transition.dangling, 0, done.seconds};
  for (const RankedColumn& column : done.columns) result.change = std::max(result.change, column.change);
  return result;
}

int rank(shardmat_context* context, const shardmat_pagerank_options* given, const double* restarts, double* scores,
         shardmat_pagerank_result* result, const Graph& graph) {
  if (!is_handle(context)) return no_handle(context, "the context");
  Ranked found;
  const int status = in_context(context->state, [&] {
    ContextState& state = *context->state;
    require_same(state, [&] {
      const shardmat_pagerank_options o = read_struct(given, "shardmat_pagerank_options");
      return std::vector<Given>{option("damping", o.damping),
                                option("tolerance", o.tolerance),
                                option("max_iterations", static_cast<double>(o.max_iterations)),
                                option("columns", static_cast<double>(o.columns)),
                                option("unweighted", o.unweighted),
                                {"the graph", text(graph.file), graph.file == nullptr ? "" : file_digest(graph.file)}};
    });
    shardmat_pagerank_options options{};
    PageRankSettings chosen;
    const auto prepare = [&] {
      options = read_struct(given, "shardmat_pagerank_options");
      chosen = settings(options);
      require(chosen.columns >= 1, "the number of columns is negative");
      require(state.communicator.rank() != 0 || scores != nullptr, "there is nowhere to put the scores");
      require(result == nullptr || result->size >= sizeof result->size, "shardmat_pagerank_result.size is not set");
      graph.check();
    };
    const auto on_owners = [&] {
      Monitor monitor{options.monitor, options.user};
      return run(state.own(), graph, options.unweighted != 0, chosen, monitor, restarts, scores);
    };
    if (state.context.has_feeders()) {
      AnswerBytes(state.context.group().call(
                      "PageRank",
                      [&] {
                        prepare();
                        return std::vector<Operand>();
                      },
                      [&](std::span<const GroupOperand>) {
                        AnswerBytes made;
                        made.put(on_owners());
                        return made.text();
                      }))
          .get(found);
    } else {
      state.communicator.run_agreed(prepare);
      found = on_owners();
    }
    if (result != nullptr)
      write_struct(result, {0, found.converged ? 1 : 0, found.iterations, found.dangling, found.change, found.seconds}, "");
  });
  if (status != SHARDMAT_OK || found.converged) return status;
  return keep_message(SHARDMAT_NOT_CONVERGED,
                      "the scores still change by more than the tolerance; allow more iterations, or a larger tolerance");
}

}  // namespace
}  // namespace shardmat::c

using namespace shardmat;
using namespace shardmat::c;

int shardmat_pagerank_of_file(shardmat_context* context, const char* graph, const shardmat_pagerank_options* options,
                              const double* restarts, double* scores, shardmat_pagerank_result* result) {
  return c::rank(context, options, restarts, scores, result,
                 {[&] { require(graph != nullptr, "the name of the graph is NULL"); },
                  [&](Context& of, bool unweighted) {
                    OpenOptions open;
                    open.allow_nonfinite = unweighted;
                    open.method = "rows", open.node_block_size = 1;  // even shares
                    return open_matrix(graph, of, open);
                  },
                  graph});
}

int shardmat_pagerank_of_rows(shardmat_context* context, const shardmat_rows* graph,
                              const shardmat_pagerank_options* options, const double* restarts, double* scores,
                              shardmat_pagerank_result* result) {
  MatrixSource source;
  return c::rank(context, options, restarts, scores, result,
                 {[&] {
                    ContextState& state = *context->state;
                    require(state.communicator.size() == 1,
                            "the rows of a graph are taken by one rank; several read it from a file");
                    source = source_of(own_rows(graph, state));
                  },
                  [&](Context&, bool) { return std::move(source); }});
}
