#include "runtime/solvers/multigrid/device_parts.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "comm/communicator.h"
#include "kernels/base/error.h"

namespace shardmat::multigrid {
namespace {

using blocks::BlockRows;
using blocks::RowsInHostMemory;

/// Lists of these rows, with global columns.
Lists lists_of(RowsInHostMemory rows, const Nodes& cols, std::int64_t entries) {
  Lists lists;
  lists.each = entries;
  lists.start = std::move(rows.start), lists.value = std::move(rows.value);
  lists.id.resize(rows.column.size());
  std::transform(rows.column.begin(), rows.column.end(), lists.id.begin(),
                 [&](std::int32_t column) { return cols.global(column); });
  return lists;
}

RowsInHostMemory rows_of(const Lists& lists, const Nodes& cols) {
  RowsInHostMemory rows{lists.start, HostVector<std::int32_t>(lists.id.size()), lists.value};
  std::transform(lists.id.begin(), lists.id.end(), rows.column.begin(), [&](std::int64_t id) { return cols.local(id); });
  return rows;
}

HostVector<std::int64_t> united(const HostVector<std::int64_t>& some, const HostVector<std::int64_t>& more) {
  HostVector<std::int64_t> all;
  std::set_union(some.begin(), some.end(), more.begin(), more.end(), std::back_inserter(all));
  return all;
}

}  // namespace

void on_each_device(Communicator& ranks, const std::function<void()>& work) {
  std::string why;
  try {
    work();
  } catch (const LeaveDevice& leave) {
    why = leave.why;
  } catch (const blocks::TooWide&) {
    why = "a row of a level has too many blocks";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::resources) throw;
    why = "device memory does not suffice";
  }
  if (ranks.all_reduce(why.empty() ? 0 : 1, Reduction::max) == 0) return;
  for (const std::string& of_rank : ranks.all_gather(why))
    if (!of_rank.empty()) throw LeaveDevice{of_rank};
}

Buffer with_ghost_values(const Nodes& nodes, const Buffer& own, std::int64_t each, Stream& stream) {
  HostVector<double> wanted, of_ghosts(nodes.ghosts().size() * at(each));
  Buffer all;
  on_each_device(nodes.ranks(), [&] {
    all = Buffer(stream.device(), at(nodes.local_count() * each) * sizeof(double));
    if (own.bytes() > 0) copy_on_device(all.data(), own.data(), own.bytes(), stream);
    const Buffer taken = blocks::gathered(own, each, nodes.wanted(), stream);
    wanted.resize(taken.bytes() / sizeof(double));
    if (!wanted.empty()) copy_to_host(wanted.data(), taken.data(), taken.bytes(), stream);
  });
  nodes.fetch_wanted(wanted.data(), of_ghosts.data(), at(each) * sizeof(double));
  if (!of_ghosts.empty())
    copy_to_device(all.as<double>() + nodes.own() * each, of_ghosts.data(), of_ghosts.size() * sizeof(double), stream);
  return all;
}

void move_home(const Nodes& made, Buffer& values, std::int64_t each, Stream& stream) {
  if (made.ranks().all_reduce(made.stays_here() ? 0 : 1, Reduction::max) == 0) return;
  HostVector<double> all;
  on_each_device(made.ranks(), [&] {
    all.assign(at(made.local_count() * each), 0.0);
    if (values.bytes() > 0) copy_to_host(all.data(), values.data(), values.bytes(), stream);
  });
  made.add_home(all, each);
  on_each_device(made.ranks(), [&] {
    values = Buffer(stream.device(), all.size() * sizeof(double));
    if (!all.empty()) copy_to_device(values.data(), all.data(), values.bytes(), stream);
  });
}

GhostRows with_ghost_rows(const BlockRows& m, const Nodes& m_cols, const Nodes& nodes, Stream& stream,
                          std::shared_ptr<const Nodes> cols) {
  Lists wanted;
  on_each_device(nodes.ranks(),
                 [&] { wanted = lists_of(blocks::some_rows(m, nodes.wanted(), stream), m_cols, m.block_entries()); });
  const Lists come = nodes.fetch(wanted);
  GhostRows out;
  out.cols =
      cols ? std::move(cols)
           : std::make_shared<const Nodes>(
                 m_cols.starts(), united(m_cols.ghosts(), ghosts_in(come, m_cols.starts(), nodes.ranks())), nodes.ranks());
  on_each_device(nodes.ranks(), [&] {
    out.number = numbers_in(m_cols, *out.cols);
    out.rows = blocks::stacked(m, m.count, out.number, rows_of(come, *out.cols), out.cols->local_count(), stream);
  });
  return out;
}

Lists RowSums::come_home(const BlockRows& part, const Nodes& rows, const Nodes& cols, Stream& stream) const {
  Lists of_ghosts;
  on_each_device(rows.ranks(), [&] {
    std::vector<std::int32_t> ghosts(rows.ghosts().size());
    std::iota(ghosts.begin(), ghosts.end(), static_cast<std::int32_t>(rows.own()));
    of_ghosts = lists_of(blocks::some_rows(part, ghosts, stream), cols, part.block_entries());
  });
  return rows.send_home(of_ghosts);
}

BlockRows RowSums::stack(const BlockRows& part, const Nodes& rows, const Nodes& cols, const Lists& come,
                         Stream& stream) const {
  return blocks::stacked(part, rows.own(), numbers_in(cols, *nodes_), rows_of(come, *nodes_), nodes_->local_count(), stream);
}

BlockRows RowSums::add(const BlockRows& part, const Nodes& rows, const Nodes& cols, Stream& stream) {
  const Lists come = come_home(part, rows, cols, stream);
  Communicator& ranks = rows.ranks();
  HostVector<std::int64_t> still;  // ghosts that are columns of own rows
  on_each_device(ranks, [&] {
    const HostVector<char> used = blocks::used_columns(part, rows.own(), stream);
    for (std::int64_t g = cols.own(); g < cols.local_count(); ++g)
      if (used[at(g)] != 0) still.push_back(cols.global(g));
  });
  nodes_ = std::make_shared<const Nodes>(cols.starts(), united(still, ghosts_in(come, cols.starts(), ranks)), ranks);
  BlockRows sums;
  on_each_device(ranks, [&] {
    // Row i of the stack is own row i; behind them stand those that came.
    const std::int64_t own = rows.own();
    HostVector<std::int64_t> start(at(own + 1), 1);
    start[0] = 0;
    for (const std::int32_t node : rows.wanted()) ++start[at(node) + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    HostVector<std::int32_t> column(at(start.back()));
    HostVector<std::int64_t> next(start.begin(), start.end() - 1);
    for (std::int64_t i = 0; i < own; ++i) column[at(next[at(i)]++)] = static_cast<std::int32_t>(i);
    for (std::size_t w = 0; w < rows.wanted().size(); ++w)
      column[at(next[at(rows.wanted()[w])]++)] = static_cast<std::int32_t>(own) + static_cast<std::int32_t>(w);
    const BlockRows all = stack(part, rows, cols, come, stream);
    pick_ = blocks::identity_rows(start, column, all.count, part.row_size, stream);
    sums = blocks::product_pattern(pick_, all, std::numeric_limits<std::int64_t>::max(), longest_, stream);
    blocks::multiply_values(pick_, all, longest_, sums, stream);
    stream.synchronize();
  });
  return sums;
}

void RowSums::add_again(const BlockRows& part, const Nodes& rows, const Nodes& cols, BlockRows& sums, Stream& stream) const {
  const Lists come = come_home(part, rows, cols, stream);
  on_each_device(rows.ranks(), [&] {
    const BlockRows all = stack(part, rows, cols, come, stream);
    blocks::multiply_values(pick_, all, longest_, sums, stream);
    stream.synchronize();
  });
}

std::int64_t RowSums::device_bytes() const {
  return static_cast<std::int64_t>(pick_.start.bytes() + pick_.column.bytes() + pick_.value.bytes());
}

}  // namespace shardmat::multigrid
