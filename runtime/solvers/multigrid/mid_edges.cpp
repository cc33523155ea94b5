#include "runtime/solvers/multigrid/mid_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/error.h"

namespace shardmat::multigrid {
namespace {

[[noreturn]] void refuse_mid_edges(const std::string& text) { throw Error(ErrorKind::input, text, "mid_edge_nodes"); }

HostVector<std::int64_t> sorted_without(HostVector<std::int64_t> numbers, std::int64_t first, std::int64_t end) {
  numbers.erase(std::remove_if(numbers.begin(), numbers.end(), [&](std::int64_t n) { return n >= first && n < end; }),
                numbers.end());
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

/// What stands for numbers of nodes of any rank: of this rank's nodes and of ghosts.
template <class T>
class Looked {
 public:
  Looked(const std::vector<std::int64_t>& starts, const HostVector<std::int64_t>& wanted, const HostVector<T>& of_own,
         Communicator& ranks)
      : nodes_(starts, sorted_without(wanted, starts[at(ranks.rank())], starts[at(ranks.rank()) + 1]), ranks),
        values_(of_own) {
    const HostVector<T> more = nodes_.fetch<T>(of_own, 1);
    values_.insert(values_.end(), more.begin(), more.end());
  }
  T of(std::int64_t number) const { return values_[at(nodes_.local(number))]; }

 private:
  Nodes nodes_;
  HostVector<T> values_;
};

/// The numbers of nodes with the given ids, by a directory that is spread over the ranks. Collective.
HostVector<std::int64_t> numbers_of(const HostVector<std::int64_t>& ids, const HostVector<std::int64_t>& own_ids,
                                    std::int64_t first, std::int64_t all, Communicator& ranks) {
  std::vector<std::int64_t> starts(at(ranks.size() + 1));
  for (std::size_t p = 0; p < starts.size(); ++p) starts[p] = all * static_cast<std::int64_t>(p) / ranks.size();
  const std::int64_t begin = starts[at(ranks.rank())], end = starts[at(ranks.rank()) + 1];
  const Nodes directory(starts, sorted_without(own_ids, begin, end), ranks);
  HostVector<std::int64_t> number_of(at(directory.local_count()), -1);
  for (std::size_t i = 0; i < own_ids.size(); ++i)
    number_of[at(directory.local(own_ids[i]))] = first + static_cast<std::int64_t>(i);
  Lists of_ghosts;
  for (std::int64_t g = directory.own(); g < directory.local_count(); ++g)
    of_ghosts.id.push_back(number_of[at(g)]), of_ghosts.start.push_back(std::ssize(of_ghosts.id));
  const Lists come = directory.send_home(of_ghosts);
  HostVector<std::int64_t> of_own(number_of.begin(), number_of.begin() + directory.own());
  for (std::size_t i = 0; i < directory.wanted().size(); ++i) of_own[at(directory.wanted()[i])] = come.id[i];
  const Looked<std::int64_t> found(starts, ids, of_own, ranks);
  HostVector<std::int64_t> numbers;
  for (const std::int64_t id : ids) numbers.push_back(found.of(id));
  return numbers;
}

/// Of each node: bit r is set if unknown r is coupled with others.
HostVector<std::int64_t> coupled_unknowns(const NodeRows& a) {
  const int s = a.row_size;
  HostVector<std::int64_t> coupled(at(a.count()), 0);
  for (std::int64_t i = 0; i < a.count(); ++i)
    for (int r = 0; r < s; ++r) {
      bool found = false;
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1] && !found; ++k)
        for (int c = 0; c < s && !found; ++c) found = a.block(k)[r * s + c] != 0 && (a.column[at(k)] != i || c != r);
      if (found) coupled[at(i)] |= std::int64_t{1} << r;
    }
  return coupled;
}

}  // namespace

MidEdges number_mid_edges(const MidEdgeNodes* given, const RowMap& map, int size, Communicator& ranks) {
  int least_and_most[] = {given != nullptr ? 1 : 0, given != nullptr ? -1 : 0};
  ranks.all_reduce(std::span<int>(least_and_most), Reduction::min);
  MidEdges found;
  if (least_and_most[0] == 0 && least_and_most[1] == 0) return found;
  const std::int64_t all = map.size() / size;
  HostVector<std::int64_t> own_ids, end_ids;
  ranks.run_agreed([&] {
    if (given == nullptr)
      throw Error(ErrorKind::usage, "some ranks give mid-edge nodes, others none; give them on all ranks or on none",
                  "mid_edge_nodes");
    const HostVector<std::int64_t> ids = map.ids_by_place();
    for (std::size_t i = 0; i < ids.size(); i += at(size)) own_ids.push_back(ids[i] / size);
    std::vector<std::pair<std::int64_t, std::int32_t>> place;
    for (std::size_t i = 0; i < own_ids.size(); ++i) place.emplace_back(own_ids[i], static_cast<std::int32_t>(i));
    std::sort(place.begin(), place.end());
    if (given->of_own.size() % 3 != 0) refuse_mid_edges("a mid-edge node comes with three numbers: its own and two ends");
    std::vector<std::array<std::int64_t, 3>> lines;  // local node, ids of the ends
    for (std::size_t i = 0; i < given->of_own.size(); i += 3) {
      const std::int64_t node = given->of_own[i];
      const auto at_node = std::lower_bound(place.begin(), place.end(), std::pair{node, std::int32_t{0}});
      if (at_node == place.end() || at_node->first != node)
        refuse_mid_edges(fmt::format("mid-edge node {} is none of this rank's nodes", node));
      for (std::size_t e : {i + 1, i + 2})
        if (given->of_own[e] < 0 || given->of_own[e] >= all || given->of_own[e] == node)
          refuse_mid_edges(fmt::format("mid-edge node {} has the end {}; an end is another of the {} nodes, counted from 0",
                                       node, given->of_own[e], all));
      lines.push_back({at_node->second, given->of_own[i + 1], given->of_own[i + 2]});
    }
    std::sort(lines.begin(), lines.end());
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (i > 0 && lines[i][0] == lines[i - 1][0])
        refuse_mid_edges(fmt::format("mid-edge node {} comes twice", own_ids[at(lines[i][0])]));
      found.nodes.push_back(static_cast<std::int32_t>(lines[i][0]));
      end_ids.push_back(lines[i][1]), end_ids.push_back(lines[i][2]);
    }
  });
  found.any = ranks.all_reduce(found.nodes.empty() ? 0 : 1, Reduction::max) == 1;
  if (!found.any) return found;
  const std::int64_t first = map.starts()[at(ranks.rank())] / size;
  found.ends = numbers_of(end_ids, own_ids, first, all, ranks);
  HostVector<char> is_middle(own_ids.size(), 0);
  for (const std::int32_t node : found.nodes) is_middle[at(node)] = 1;
  std::vector<std::int64_t> starts = map.starts();
  for (std::int64_t& start : starts) start /= size;
  const Looked<char> middle(starts, found.ends, is_middle, ranks);
  ranks.run_agreed([&] {
    for (std::size_t i = 0; i < found.ends.size(); ++i)
      if (middle.of(found.ends[i]) != 0)
        refuse_mid_edges(fmt::format("mid-edge node {} has the end {}, which is a mid-edge node itself",
                                     own_ids[at(found.nodes[i / 2])], end_ids[i]));
  });
  return found;
}

MidEdgeTransfer drop_mid_edges(const NodeRows& a, const Modes& modes, const MidEdges& mid_edges, std::int64_t least) {
  Communicator& ranks = a.rows->ranks();
  const int s = a.row_size;
  const std::int64_t own = a.count(), entries = a.block_entries(), of_node = std::int64_t{s} * modes.count;
  HostVector<std::int64_t> corner(at(own), 0);  // its number on the next level; -1: in the middle of an edge
  for (const std::int32_t node : mid_edges.nodes) corner[at(node)] = -1;
  const std::int64_t corners = own - std::ssize(mid_edges.nodes);
  const std::vector<std::int64_t> starts = starts_of(corners, ranks);
  std::int64_t next = starts[at(ranks.rank())];
  for (std::int64_t& number : corner)
    if (number == 0) number = next++;
  const HostVector<std::int64_t> coupled = coupled_unknowns(a);
  const Looked<std::int64_t> corner_of(a.rows->starts(), mid_edges.ends, corner, ranks),
      coupled_of(a.rows->starts(), mid_edges.ends, coupled, ranks);
  Lists t, p;
  t.each = p.each = entries;
  const auto add = [&](Lists& to, std::int64_t column, double value, std::int64_t unknowns) {
    to.id.push_back(column);
    const std::size_t first = to.value.size();
    to.value.insert(to.value.end(), at(entries), 0.0);
    for (int r = 0; r < s; ++r) to.value[first + at(r * s + r)] = (unknowns >> r & 1) != 0 ? value : 0;
  };
  Modes of_corners{s, modes.count, HostVector<double>(at(corners * of_node))};
  for (std::int64_t i = 0, middle = 0; i < own; ++i) {
    if (corner[at(i)] >= 0) {
      for (Lists* const to : {&t, &p}) add(*to, corner[at(i)], 1, coupled[at(i)]);  // known values, too: 0 then
      std::copy_n(modes.value.begin() + i * of_node, of_node,
                  of_corners.value.begin() + (corner[at(i)] - starts[at(ranks.rank())]) * of_node);
    } else {
      for (const std::int64_t e : {2 * middle, 2 * middle + 1}) {
        const std::int64_t end = mid_edges.ends[at(e)], unknowns = coupled[at(i)] & coupled_of.of(end);
        if (unknowns != 0) add(p, corner_of.of(end), 0.5, unknowns);
      }
      ++middle;
    }
    t.start.push_back(std::ssize(t.id)), p.start.push_back(std::ssize(p.id));
  }
  const std::vector<std::int64_t> moved = on_fewer_ranks(starts, least);
  MidEdgeTransfer to{from_lists(t, s, s, a.rows, moved), from_lists(p, s, s, a.rows, moved), std::move(of_corners)};
  to.modes.value.resize(at(to.corners.cols->local_count() * of_node),
                        0.0);  // those of ranks that gave their nodes to this one
  to.corners.cols->add_home(to.modes.value, of_node);
  return to;
}

}  // namespace shardmat::multigrid
