#include "runtime/solvers/multigrid/restriction.h"

#include <memory>
#include <utility>
#include <vector>

namespace shardmat::multigrid {
namespace {

std::vector<std::int64_t> times(std::vector<std::int64_t> starts, std::int64_t size) {
  for (std::int64_t& start : starts) start *= size;
  return starts;
}

/// Adds the parts of all ranks, which have one for each unknown of their columns of P. `start`: of the blocks of each
/// column, `size`: unknowns of a column. Collective.
NodeRows sums_of_parts(const Nodes& coarse, std::int64_t size, const HostVector<std::int64_t>& start) {
  Communicator& ranks = coarse.ranks();
  const std::vector<std::int64_t> starts = starts_of(coarse.local_count(), ranks);
  const std::int64_t first = starts[at(ranks.rank())];
  const auto has_part = [&](std::int64_t node) { return start[at(node)] < start[at(node) + 1]; };
  Lists of_ghosts;
  for (std::int64_t g = coarse.own(); g < coarse.local_count(); ++g) {
    if (has_part(g)) of_ghosts.id.push_back(first + g);
    of_ghosts.start.push_back(std::ssize(of_ghosts.id));
  }
  const Lists come = coarse.send_home(of_ghosts);
  std::vector<std::vector<std::int64_t>> parts_of(at(coarse.own()));
  for (std::int64_t i = 0; i < coarse.own(); ++i)
    if (has_part(i)) parts_of[at(i)].push_back(first + i);
  for (std::size_t w = 0; w < coarse.wanted().size(); ++w)
    for (std::int64_t k = come.start[w]; k < come.start[w + 1]; ++k)
      parts_of[at(coarse.wanted()[w])].push_back(come.id[at(k)]);
  Lists parts;
  parts.each = 1;
  for (const std::vector<std::int64_t>& of_node : parts_of)
    for (std::int64_t c = 0; c < size; ++c) {
      for (const std::int64_t id : of_node) parts.id.push_back(id * size + c);
      parts.start.push_back(std::ssize(parts.id));
    }
  parts.value.assign(parts.id.size(), 1.0);
  auto rows = std::make_shared<const Nodes>(times(coarse.starts(), size), HostVector<std::int64_t>(), ranks);
  return from_lists(parts, 1, 1, std::move(rows), times(starts, size));
}

}  // namespace

Restriction::Restriction(const NodeRows& p, const ByColumn& by_columns, Context& context, ValueType type, int columns)
    : here_(transposed(p, by_columns), context, type, columns) {
  if (context.communicator().size() > 1)
    sums_.emplace(sums_of_parts(*p.cols, p.col_size, by_columns.start), context, type, columns);
}

Restriction::Restriction(const blocks::BlockRows& transposed_p, const Nodes& fine, const Nodes& coarse, Context& context,
                         ValueType type, int columns)
    : here_(transposed_p, Nodes(fine.starts(), {}, fine.ranks()), false, context, type, columns) {
  if (context.communicator().size() == 1) return;
  HostVector<std::int64_t> start(at(transposed_p.count + 1));
  copy_to_host(start.data(), transposed_p.start.data(), transposed_p.start.bytes(), context.stream());
  sums_.emplace(sums_of_parts(coarse, transposed_p.row_size, start), context, type, columns);
}

void Restriction::update(const NodeRows& p, const ByColumn& by_columns, Stream& stream) {
  here_.update(transposed(p, by_columns), stream);
}

void Restriction::multiply(const void* fine, void* coarse, Stream& stream) const {
  here_.multiply(1, fine, 0, sums_ ? sums_->x() : coarse, stream);
  if (sums_) sums_->multiply(1, 0, coarse, stream);
}

std::int64_t Restriction::device_bytes() const { return here_.device_bytes() + (sums_ ? sums_->device_bytes() : 0); }

std::int64_t Restriction::compulsory_bytes() const {
  return here_.compulsory_bytes(0) + (sums_ ? sums_->compulsory_bytes(0) : 0);
}

}  // namespace shardmat::multigrid
