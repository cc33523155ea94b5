// Graph collections in TUDataset's text. Edges are parsed in parallel; sorting each row by column makes the result the same
// for any order in which threads deliver them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/narrow.h"
#include "kernels/base/parallel.h"
#include "partition/batched/batch_list.h"
#include "partition/readers/matrix_market.h"

namespace shardmat {
namespace {

using Path = std::filesystem::path;
using matrix_market::quote_word;
using matrix_market::require_line_end;
using matrix_market::skip_blanks;

constexpr std::string_view kEdges = "_A.txt", kGraphs = "_graph_indicator.txt";

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The file of this prefix, plain or compressed, if there is one.
std::optional<Path> find_file(const std::string& prefix, std::string_view suffix) {
  std::error_code error;
  for (const char* compressed : {"", ".gz"})
    if (const Path path = fmt::format("{}{}{}", prefix, suffix, compressed); std::filesystem::exists(path, error))
      return path;
  return {};
}

/// The prefixes in a folder, or that of the argument; none if it is no TUDataset.
std::vector<std::string> prefixes(const std::string& argument) {
  std::error_code error;
  std::vector<std::string> found;
  const auto add_prefix_of = [&](std::string_view name) {
    if (name.ends_with(".gz")) name.remove_suffix(3);
    if (name.ends_with(kEdges)) found.emplace_back(name.substr(0, name.size() - kEdges.size()));
  };
  if (std::filesystem::is_regular_file(argument, error)) add_prefix_of(argument);
  else if (find_file(argument, kEdges)) found.push_back(argument);
  for (std::filesystem::directory_iterator i(argument, error), end; !error && i != end; i.increment(error))
    add_prefix_of(i->path().string());
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// A whole number from 1 to `most`, counted from 0. Moves p behind it. Throws LineFault.
std::int64_t take_number(const char*& p, const char* end, const char* what, std::int64_t most) {
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(p, end, number);
  if (stop == p) throw LineFault{p, fmt::format("{} is no number of a {}", quote_word(p), what)};
  if (error != std::errc{} || number < 1 || number > most)
    throw LineFault{p, fmt::format("{} {} is out of range [1, {}]", what, quote_word(p), most)};
  p = stop;
  return number - 1;
}

/// Reads the graph of each node, and from it the first node of each graph.
class GraphIndicator {
 public:
  explicit GraphIndicator(const Path& path) {
    const auto text = TextSource::open(path, {});
    LineCursor lines(*text);
    for (std::string_view line = lines.next(); !line.empty(); line = lines.next()) {
      const char* p = skip_blanks(line.data());
      if (*p == '\n') continue;
      try {
        add(take_number(p, line.data() + line.size(), "graph", kMostGraphs));
        require_line_end(p);
      } catch (const LineFault& fault) {
        lines.fail(fault.what);
      }
    }
    first_node_.push_back(nodes());
    text->file().require_unchanged();
  }

  std::int64_t nodes() const { return std::ssize(graph_of_); }
  std::int64_t graph_of(std::int64_t node) const { return graph_of_[at(node)]; }
  std::int64_t first_node(std::int64_t graph) const { return first_node_[at(graph)]; }
  const HostVector<std::int64_t>& first_nodes() const { return first_node_; }

 private:
  static constexpr std::int64_t kMostGraphs = std::numeric_limits<std::int32_t>::max();
  /// A graph number that is further from the one before is taken for a wrong one.
  static constexpr std::int64_t kMostLeftOut = 1 << 20;

  void add(std::int64_t graph) {
    const std::int64_t before = std::ssize(first_node_) - 1;
    if (graph < before)
      throw LineFault{
          nullptr, fmt::format("graph {} comes after graph {}; the nodes must be sorted by graph", graph + 1, before + 1)};
    if (graph > before + kMostLeftOut)
      throw LineFault{nullptr, fmt::format("graph {} comes after graph {}; so many graphs without nodes are refused",
                                           graph + 1, before + 1)};
    if (graph > before) first_node_.resize(at(graph) + 1, nodes());  // those left out have no nodes
    graph_of_.push_back(static_cast<std::int32_t>(graph));
  }

  HostVector<std::int32_t> graph_of_;
  HostVector<std::int64_t> first_node_;
};

struct Edge {
  std::int64_t node;       ///< of all graphs
  std::int32_t neighbour;  ///< within the graph
};

void parse_edges(std::string_view piece, const GraphIndicator& graphs, std::vector<Edge>& edges) {
  const char* const end = piece.data() + piece.size();
  for (const char* line = piece.data(); line < end; line += std::string_view(line, end).find('\n') + 1) {
    const char* p = skip_blanks(line);
    if (*p == '\n') continue;
    const std::int64_t from = take_number(p, end, "node", graphs.nodes());
    p = skip_blanks(p);
    if (*p == ',') p = skip_blanks(p + 1);
    const std::int64_t to = take_number(p, end, "node", graphs.nodes());
    require_line_end(p);
    const std::int64_t graph = graphs.graph_of(from);
    if (graphs.graph_of(to) != graph)
      throw LineFault{line, fmt::format("node {} is of graph {} and node {} of graph {}; an edge lies within a graph",
                                        from + 1, graph + 1, to + 1, graphs.graph_of(to) + 1)};
    edges.push_back({from, narrow<std::int32_t>(to - graphs.first_node(graph), "node")});
  }
}

std::vector<Edge> read_edges(const Path& path, const GraphIndicator& graphs) {
  const auto text = TextSource::open(path, {});
  std::vector<Edge> edges;
  std::mutex mutex;
  for_each_piece(*text, 0, {}, "read edges", {}, [&](std::string_view piece) {
    std::vector<Edge> some;
    parse_edges(piece, graphs, some);
    const std::scoped_lock lock(mutex);
    edges.insert(edges.end(), some.begin(), some.end());
  });
  text->file().require_unchanged();
  return edges;
}

HostBatch adjacency(const GraphIndicator& graphs, const std::vector<Edge>& edges) {
  HostBatch batch;
  batch.first_row = batch.first_col = graphs.first_nodes();
  batch.row_ptr.assign(at(graphs.nodes()) + 2, 0);
  for (const Edge& edge : edges) ++batch.row_ptr[at(edge.node) + 2];
  for (std::size_t i = 2; i < batch.row_ptr.size(); ++i) batch.row_ptr[i] += batch.row_ptr[i - 1];
  batch.col_idx.resize(edges.size());
  for (const Edge& edge : edges) batch.col_idx[at(batch.row_ptr[at(edge.node) + 1]++)] = edge.neighbour;
  batch.row_ptr.pop_back();  // each has become the start of the next row
  parallel_ranges(graphs.nodes(), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      std::sort(batch.col_idx.begin() + batch.row_ptr[at(row)], batch.col_idx.begin() + batch.row_ptr[at(row) + 1]);
  });
  batch.values.assign(edges.size(), 1);
  return batch;
}

}  // namespace

bool accepts_tudataset(const std::string& argument) { return !prefixes(argument).empty(); }

std::unique_ptr<BatchSource> open_tudataset(const std::string& argument) {
  const std::vector<std::string> found = prefixes(argument);
  if (found.size() > 1)
    throw Error(ErrorKind::input, fmt::format("{}: it holds more than one dataset; give the prefix of one, such as {}",
                                              argument, found.front()));
  const std::optional<Path> edges = find_file(found.front(), kEdges), indicator = find_file(found.front(), kGraphs);
  if (!indicator)
    throw Error(ErrorKind::input, fmt::format("{}: beside it there is no {}{}, which says the graph of each node",
                                              edges->string(), found.front(), kGraphs));
  const GraphIndicator graphs(*indicator);
  return make_memory_batch(std::make_shared<const HostBatch>(adjacency(graphs, read_edges(*edges, graphs))), argument);
}

}  // namespace shardmat
