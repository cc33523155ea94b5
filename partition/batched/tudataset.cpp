// Graph collections in TUDataset's text. Edges are parsed in parallel; sorting each row by column makes the result the same
// for any order in which threads deliver them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/base/at.h"
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

constexpr std::string_view kEdges = "_A.txt", kGraphs = "_graph_indicator.txt", kAttributes = "_edge_attributes.txt";

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
    file_ = &text->file();
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
  /// More graphs without nodes than nodes and these are taken for wrong numbers.
  static constexpr std::int64_t kMostLeftOut = 1 << 20;

  void add(std::int64_t graph) {
    const std::int64_t before = std::ssize(first_node_) - 1;
    if (graph < before)
      throw LineFault{
          nullptr, fmt::format("graph {} comes after graph {}; the nodes must be sorted by graph", graph + 1, before + 1)};
    if (graph > kMostLeftOut + nodes())
      throw LineFault{nullptr, fmt::format("graph {} comes after graph {}; so many graphs without nodes are refused",
                                           graph + 1, before + 1)};
    if (graph > before) first_node_.resize(at(graph) + 1, nodes());  // those left out have no nodes
    if (graph_of_.size() == graph_of_.capacity())                    // the vector doubles; rows take as much again
      ReadLimits().require_budget(24 * std::ssize(graph_of_), *file_);
    graph_of_.push_back(static_cast<std::int32_t>(graph));
  }

  const InputFile* file_ = nullptr;  ///< while it is read
  HostVector<std::int32_t> graph_of_;
  HostVector<std::int64_t> first_node_;
};

struct Edge {
  std::int64_t node;       ///< of all graphs
  std::int32_t neighbour;  ///< within the graph
};

/// The edge of a line whose first letter that is no blank is at p.
Edge parse_edge(const char* p, const char* end, const GraphIndicator& graphs) {
  const char* const line = p;
  const std::int64_t from = take_number(p, end, "node", graphs.nodes());
  p = skip_blanks(p);
  if (*p == ',') p = skip_blanks(p + 1);
  const std::int64_t to = take_number(p, end, "node", graphs.nodes());
  require_line_end(p);
  const std::int64_t graph = graphs.graph_of(from);
  if (graphs.graph_of(to) != graph)
    throw LineFault{line, fmt::format("node {} is of graph {} and node {} of graph {}; an edge lies within a graph",
                                      from + 1, graph + 1, to + 1, graphs.graph_of(to) + 1)};
  return {from, narrow<std::int32_t>(to - graphs.first_node(graph), "node")};
}

void parse_edges(std::string_view piece, const GraphIndicator& graphs, std::vector<Edge>& edges) {
  const char* const end = piece.data() + piece.size();
  for (const char* line = piece.data(); line < end; line += std::string_view(line, end).find('\n') + 1)
    if (const char* p = skip_blanks(line); *p != '\n') edges.push_back(parse_edge(p, end, graphs));
}

std::vector<Edge> read_edges(const Path& path, const GraphIndicator& graphs) {
  const auto text = TextSource::open(path, {});
  std::vector<Edge> edges;
  std::mutex mutex;
  for_each_piece(*text, 0, {}, "read edges", {}, [&](std::string_view piece) {
    std::vector<Edge> some;
    parse_edges(piece, graphs, some);
    const std::scoped_lock lock(mutex);
    if (edges.size() + some.size() > edges.capacity())  // the vector doubles; the matrices take as much again
      ReadLimits().require_budget(48 * std::ssize(edges), text->file());
    edges.insert(edges.end(), some.begin(), some.end());
  });
  text->file().require_unchanged();
  return edges;
}

/// Lines of a file that are not blank, one after another.
class FilledLines {
 public:
  explicit FilledLines(const Path& path) : text_(TextSource::open(path, {})), lines_(*text_) {}

  /// The next line, without blanks before it; empty at the end.
  std::string_view next() {
    for (std::string_view line = lines_.next(); !line.empty(); line = lines_.next())
      if (const char* p = skip_blanks(line.data()); *p != '\n') return {p, line.data() + line.size()};
    return {};
  }
  /// Calls use(), whose LineFaults are of the line that next() gave last.
  template <class Use>
  auto within_line(const Use& use) const {
    try {
      return use();
    } catch (const LineFault& fault) {
      lines_.fail(fault.what, fault.setting);
    }
  }
  [[noreturn]] void fail(const std::string& what) const { lines_.fail(what); }
  void require_unchanged() const { text_->file().require_unchanged(); }
  const InputFile& file() const { return text_->file(); }

 private:
  std::unique_ptr<TextSource> text_;
  LineCursor lines_;
};

/// A finite number, of which `word` is the whole text.
double parse_attribute(std::string_view word) {
  const std::string text = fmt::format("{}\n", word);  // parse_value wants a line
  double value = 0;
  const char* behind = matrix_market::parse_value(text.data(), text.data() + text.size(), matrix_market::Field::real,
                                                  /*allow_nonfinite=*/true, value);
  require_line_end(behind);
  if (!std::isfinite(value)) throw LineFault{nullptr, fmt::format("the value {} is not finite", quote_word(text.data()))};
  return value;
}

/// The numbers of a line, between commas or blanks.
void parse_attributes(std::string_view line, std::vector<double>& attributes) {
  attributes.clear();
  const char *p = line.data(), *const end = line.data() + line.size();
  while (*p != '\n') {
    const char* const word = p;
    while (p < end && *p != ',' && *p != '\n' && skip_blanks(p) == p) ++p;
    attributes.push_back(parse_attribute({word, p}));
    p = skip_blanks(p);
    if (*p == ',') p = skip_blanks(p + 1);
  }
}

/// Reads the value of each edge, line by line beside the edges.
class Attributes {
 public:
  Attributes(const Path& path, std::int64_t column) : path_(path), lines_(path), column_(column) {}

  /// Of the edge `number`, from 0; they must be asked for in this order.
  double next(std::int64_t number) {
    const std::string_view line = lines_.next();
    if (line.empty())
      throw Error(ErrorKind::input,
                  fmt::format("{}: it has the attributes of {} edges, but there are more edges", path_.string(), number));
    return lines_.within_line([&] { return choose(line); });
  }
  void require_end(std::int64_t edges) {
    if (!lines_.next().empty()) lines_.fail(fmt::format("it has attributes of more than the {} edges", edges));
    lines_.require_unchanged();
  }

 private:
  double choose(std::string_view line) {
    parse_attributes(line, attributes_);
    const std::int64_t columns = std::ssize(attributes_);
    if (columns_ == 0) require_choice(columns);
    if (columns != columns_)
      throw LineFault{nullptr, fmt::format("it has {} attributes, but the lines before have {}", columns, columns_)};
    return attributes_[at(std::max<std::int64_t>(column_, 1) - 1)];
  }
  /// For the first line: those behind it must have as many attributes.
  void require_choice(std::int64_t columns) {
    if (column_ == 0 && columns > 1)
      throw LineFault{nullptr,
                      fmt::format("an edge has {} attributes; take the edges unweighted, or choose which attribute, 1 … {}, "
                                  "is the value of an edge",
                                  columns, columns),
                      "edge_attribute"};
    if (column_ > columns)
      throw LineFault{nullptr, fmt::format("an edge has {} attribute{}; there is no attribute {}", columns,
                                           columns == 1 ? "" : "s", column_)};
    columns_ = columns;
  }

  Path path_;
  FilledLines lines_;
  std::int64_t column_, columns_ = 0;  ///< columns_ is 0 before the first line
  std::vector<double> attributes_;
};

/// Edges and their values, in the order of the file.
std::vector<Edge> read_weighted(const Path& path, const GraphIndicator& graphs, Attributes& attributes,
                                std::vector<double>& values) {
  FilledLines lines(path);
  std::vector<Edge> edges;
  for (std::string_view line = lines.next(); !line.empty(); line = lines.next()) {
    if (edges.size() == edges.capacity())  // the vectors double; the matrices take as much again
      ReadLimits().require_budget(64 * std::ssize(edges), lines.file());
    edges.push_back(lines.within_line([&] { return parse_edge(line.data(), line.data() + line.size(), graphs); }));
    values.push_back(attributes.next(std::ssize(values)));
  }
  lines.require_unchanged();
  attributes.require_end(std::ssize(edges));
  return edges;
}

/// Sorts entries [begin, end) by column; entries of one column keep their order.
void sort_row(HostBatch& batch, std::int64_t begin, std::int64_t end) {
  std::vector<std::pair<std::int32_t, double>> row;
  for (std::int64_t k = begin; k < end; ++k) row.emplace_back(batch.col_idx[at(k)], batch.values[at(k)]);
  std::stable_sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::int64_t k = begin; k < end; ++k) std::tie(batch.col_idx[at(k)], batch.values[at(k)]) = row[at(k - begin)];
}

/// The values are all 1 if none are given.
HostBatch adjacency(const GraphIndicator& graphs, const std::vector<Edge>& edges, const std::vector<double>& values) {
  HostBatch batch;
  batch.first_row = batch.first_col = graphs.first_nodes();
  batch.row_ptr.assign(at(graphs.nodes()) + 2, 0);
  for (const Edge& edge : edges) ++batch.row_ptr[at(edge.node) + 2];
  for (std::size_t i = 2; i < batch.row_ptr.size(); ++i) batch.row_ptr[i] += batch.row_ptr[i - 1];
  batch.col_idx.resize(edges.size());
  batch.values.assign(edges.size(), 1);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const std::size_t to = at(batch.row_ptr[at(edges[i].node) + 1]++);
    batch.col_idx[to] = edges[i].neighbour;
    if (!values.empty()) batch.values[to] = values[i];
  }
  batch.row_ptr.pop_back();  // each has become the start of the next row
  parallel_ranges(graphs.nodes(), 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t first = batch.row_ptr[at(row)], last = batch.row_ptr[at(row) + 1];
      if (values.empty()) std::sort(batch.col_idx.begin() + first, batch.col_idx.begin() + last);
      else sort_row(batch, first, last);
    }
  });
  return batch;
}

}  // namespace

bool accepts_tudataset(const std::string& argument) { return !prefixes(argument).empty(); }

std::unique_ptr<BatchSource> open_tudataset(const std::string& argument, const EdgeValues& choice) {
  const std::vector<std::string> found = prefixes(argument);
  if (found.size() > 1)
    throw Error(ErrorKind::input, fmt::format("{}: it holds more than one dataset; give the prefix of one, such as {}",
                                              argument, found.front()));
  const std::optional<Path> edges = find_file(found.front(), kEdges), indicator = find_file(found.front(), kGraphs);
  if (!indicator)
    throw Error(ErrorKind::input, fmt::format("{}: beside it there is no {}{}, which says the graph of each node",
                                              edges->string(), found.front(), kGraphs));
  const GraphIndicator graphs(*indicator);
  const std::optional<Path> attributes = choice.unweighted ? std::nullopt : find_file(found.front(), kAttributes);
  if (choice.attribute > 0 && !attributes)
    throw Error(ErrorKind::input, fmt::format("{}: there is no {}{}, from which an attribute of edges could be chosen",
                                              argument, found.front(), kAttributes));
  std::vector<double> values;
  std::vector<Edge> read;
  if (attributes) {
    Attributes lines(*attributes, choice.attribute);
    read = read_weighted(*edges, graphs, lines, values);
  } else {
    read = read_edges(*edges, graphs);
  }
  return make_memory_batch(std::make_shared<const HostBatch>(adjacency(graphs, read, values)), argument);
}

}  // namespace shardmat
