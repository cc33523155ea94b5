#include <algorithm>
#include <functional>
#include <utility>

#include "kernels/matrix/csr.h"
#include "partition/row_source.h"
#include "runtime/c/handles.h"

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
  dispatch(given.values_type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::copy_n(static_cast<const T*>(given.values), given.columns.size(), graph->values.begin());
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

/// `open`: makes the source of the graph, for the partition "rows".
int rank(shardmat_context* context, const shardmat_pagerank_options* given, const double* restarts, double* scores,
         shardmat_pagerank_result* result, const std::function<MatrixSource(ContextState&, bool unweighted)>& open) {
  if (context == nullptr) return c_status([] { require(false, "the context is NULL"); });
  bool converged = true;
  const int status = in_context(context->state, [&] {
    ContextState& state = *context->state;
    Communicator& ranks = state.communicator;
    const ContextScope scope(state.context);
    shardmat_pagerank_options options{};
    PageRankSettings chosen;
    ranks.together([&] {
      options = read_struct(given, "shardmat_pagerank_options");
      chosen = settings(options);
      require(chosen.columns >= 1, "the number of columns is negative");
      require(ranks.rank() != 0 || scores != nullptr, "there is nowhere to put the scores");
      require(result == nullptr || result->size >= sizeof result->size, "shardmat_pagerank_result.size is not set");
    });
    const MatrixSource graph = open(state, options.unweighted != 0);
    const Transition transition = transition_matrix(graph, {options.unweighted != 0, "nnz"}, ranks);
    LoadOptions load;
    load.right_hand_sides = chosen.columns;
    DistributedMatrix links(transition.links, state.context, load);
    PageRank pagerank(links, chosen);
    Stream& stream = state.context.stream();
    DistributedVector found(links, VectorLayout::rows, ValueType::f64, chosen.columns);
    std::optional<DistributedVector> v;
    if (ranks.all_reduce(restarts != nullptr ? 1 : 0, Reduction::max) == 1) {
      const auto entries = static_cast<std::size_t>(links.rows() * chosen.columns);
      v.emplace(links, VectorLayout::rows, ValueType::f64, chosen.columns);
      v->scatter(restarts == nullptr || ranks.rank() != 0 ? std::span<const double>() : std::span(restarts, entries),
                 stream);
    }
    Monitor monitor{options.monitor, options.user};
    const PageRankResult done = pagerank.run(
        v ? &*v : nullptr, found, [&](std::int64_t n, const std::vector<double>& changes) { monitor(n, changes); },
        [&] { return monitor.ended; });
    const HostVector<double> all = found.gather(stream);
    std::copy(all.begin(), all.end(), scores);
    converged = done.converged();
    double change = 0;
    for (const RankedColumn& column : done.columns) change = std::max(change, column.change);
    if (result != nullptr)
      write_struct(result, {0, converged ? 1 : 0, done.iterations, transition.dangling, change, done.seconds}, "");
  });
  if (status != SHARDMAT_OK || converged) return status;
  return keep_message(SHARDMAT_NOT_CONVERGED,
                      "the scores still change by more than the tolerance; allow more iterations, or a larger tolerance");
}

}  // namespace
}  // namespace shardmat::c

using namespace shardmat;
using namespace shardmat::c;

int shardmat_pagerank_of_file(shardmat_context* context, const char* graph, const shardmat_pagerank_options* options,
                              const double* restarts, double* scores, shardmat_pagerank_result* result) {
  return c::rank(context, options, restarts, scores, result, [&](ContextState& state, bool unweighted) {
    state.communicator.together([&] { require(graph != nullptr, "the name of the graph is NULL"); });
    OpenOptions open;
    open.allow_nonfinite = unweighted;
    open.method = "rows";
    return open_matrix(graph, state.context, open);
  });
}

int shardmat_pagerank_of_rows(shardmat_context* context, const shardmat_rows* graph,
                              const shardmat_pagerank_options* options, const double* restarts, double* scores,
                              shardmat_pagerank_result* result) {
  return c::rank(context, options, restarts, scores, result, [&](ContextState& state, bool) {
    return state.communicator.together([&] {
      require(state.communicator.size() == 1, "the rows of a graph are taken by one rank; several read it from a file");
      std::int64_t count = 0;
      return source_of(own_rows(graph, state, count));
    });
  });
}
