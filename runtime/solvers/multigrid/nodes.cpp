#include "runtime/solvers/multigrid/nodes.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace shardmat::multigrid {
namespace {

constexpr int kTag = 0x6d67;

using Outgoing = Communicator::Transfer::Outgoing;
using Incoming = Communicator::Transfer::Incoming;

void move_between_ranks(const std::vector<Outgoing>& sends, const std::vector<Incoming>& receives, Communicator& ranks) {
  ranks.check_in();
  auto transfer = ranks.start(sends, receives, kTag);
  ranks.finish(transfer);
}

/// Sends the runs of `lists` in `out`, receives as many lists as `in` says. Lists lie run by run.
struct ListRun {
  int rank;
  std::int64_t first, count;
};

Lists exchange(const Lists& lists, std::span<const ListRun> out, std::span<const ListRun> in, Communicator& ranks) {
  HostVector<std::int64_t> lengths(at(lists.count()));
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = lists.start[i + 1] - lists.start[i];
  Lists result;
  result.each = lists.each;
  std::int64_t count = 0;
  for (const ListRun& run : in) count += run.count;
  HostVector<std::int64_t> come(at(count));
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  for (const ListRun& run : out)
    sends.push_back({run.rank, lengths.data() + run.first, at(run.count) * sizeof(std::int64_t)});
  for (const ListRun& run : in)
    receives.push_back({run.rank, come.data() + run.first, at(run.count) * sizeof(std::int64_t)});
  move_between_ranks(sends, receives, ranks);
  result.start.assign(1, 0);
  for (const std::int64_t length : come) result.start.push_back(result.start.back() + length);
  result.id.resize(at(result.start.back()));
  result.value.resize(at(result.start.back() * lists.each));
  for (const bool values : {false, true}) {
    sends.clear(), receives.clear();
    const auto bytes = [&](std::int64_t items) {
      return at(items) * (values ? sizeof(double) * at(lists.each) : sizeof(std::int64_t));
    };
    for (const ListRun& run : out) {
      const std::int64_t begin = lists.start[at(run.first)], end = lists.start[at(run.first + run.count)];
      const void* const from =
          values ? static_cast<const void*>(lists.value.data() + begin * lists.each) : lists.id.data() + begin;
      sends.push_back({run.rank, from, bytes(end - begin)});
    }
    for (const ListRun& run : in) {
      const std::int64_t begin = result.start[at(run.first)], end = result.start[at(run.first + run.count)];
      void* const to = values ? static_cast<void*>(result.value.data() + begin * lists.each) : result.id.data() + begin;
      receives.push_back({run.rank, to, bytes(end - begin)});
    }
    move_between_ranks(sends, receives, ranks);
  }
  return result;
}

}  // namespace

std::vector<std::int64_t> starts_of(std::int64_t own, Communicator& ranks) {
  std::vector<std::int64_t> starts{0};
  for (const std::int64_t count : ranks.all_gather(own)) starts.push_back(starts.back() + count);
  return starts;
}

std::shared_ptr<const Nodes> nodes_of_one_rank(std::int64_t count, Communicator& ranks) {
  return std::make_shared<const Nodes>(std::vector<std::int64_t>{0, count}, HostVector<std::int64_t>(), ranks);
}

std::vector<std::int64_t> on_fewer_ranks(std::vector<std::int64_t> starts, std::int64_t least) {
  const std::size_t ranks = starts.size() - 1;
  std::size_t first = 0, before = 0;  // ranks that take: this one, and the one before it
  for (std::size_t p = 0; p < ranks; ++p) {
    const std::int64_t end = starts[p + 1], count = end - starts[first];
    const bool last = p + 1 == ranks;
    if (count < least && !last) continue;
    if (last && 2 * count < least) first = before;  // too few for a rank of their own
    std::fill(starts.begin() + static_cast<std::ptrdiff_t>(first) + 1, starts.begin() + static_cast<std::ptrdiff_t>(p) + 1,
              end);
    before = first, first = p + 1;
  }
  return starts;
}

std::shared_ptr<const Nodes> moved_nodes(std::int64_t own, std::int64_t least, Communicator& ranks) {
  const std::vector<std::int64_t> made = starts_of(own, ranks);
  std::vector<std::int64_t> starts = on_fewer_ranks(made, least);
  HostVector<std::int64_t> away(at(starts[at(ranks.rank())] == starts[at(ranks.rank()) + 1] ? own : 0));
  std::iota(away.begin(), away.end(), made[at(ranks.rank())]);
  return std::make_shared<const Nodes>(std::move(starts), std::move(away), ranks);
}

HostVector<std::int64_t> ghosts_in(const Lists& lists, const std::vector<std::int64_t>& starts, const Communicator& ranks) {
  const std::int64_t first = starts[at(ranks.rank())], end = starts[at(ranks.rank()) + 1];
  HostVector<std::int64_t> ghosts;
  for (const std::int64_t id : lists.id)
    if (id < first || id >= end) ghosts.push_back(id);
  std::sort(ghosts.begin(), ghosts.end());
  ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
  return ghosts;
}

HostVector<std::int32_t> numbers_in(const Nodes& before, const Nodes& after) {
  HostVector<std::int32_t> number(at(before.local_count()));
  std::iota(number.begin(), number.begin() + before.own(), 0);
  const HostVector<std::int64_t>& ghosts = after.ghosts();
  for (std::int64_t g = before.own(); g < before.local_count(); ++g) {
    const auto found = std::lower_bound(ghosts.begin(), ghosts.end(), before.global(g));
    const bool is_there = found != ghosts.end() && *found == before.global(g);
    number[at(g)] = is_there ? static_cast<std::int32_t>(after.own() + (found - ghosts.begin())) : 0;
  }
  return number;
}

Nodes::Nodes(std::vector<std::int64_t> starts, HostVector<std::int64_t> ghosts, Communicator& ranks)
    : starts_(std::move(starts)), ghosts_(std::move(ghosts)), ranks_(&ranks), rank_(static_cast<std::size_t>(ranks.rank())) {
  if (ranks.size() == 1) return;
  std::vector<std::int64_t> needed(static_cast<std::size_t>(ranks.size()));
  std::vector<std::int64_t> first_of(needed.size());
  for (std::size_t p = 0; p < needed.size(); ++p) {
    const auto begin = std::lower_bound(ghosts_.begin(), ghosts_.end(), starts_[p]),
               end = std::lower_bound(begin, ghosts_.end(), starts_[p + 1]);
    first_of[p] = begin - ghosts_.begin(), needed[p] = end - begin;
  }
  const std::vector<std::int64_t> wanted = ranks.all_to_all(needed);
  std::int64_t all_wanted = 0;
  for (std::size_t p = 0; p < needed.size(); ++p) {
    if (needed[p] == 0 && wanted[p] == 0) continue;
    neighbours_.push_back({static_cast<int>(p), first_of[p], needed[p], all_wanted, wanted[p]});
    all_wanted += wanted[p];
  }
  std::vector<std::int64_t> ids(at(all_wanted));
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  for (const Neighbour& n : neighbours_) {
    sends.push_back({n.rank, ghosts_.data() + n.first_ghost, at(n.ghosts) * sizeof(std::int64_t)});
    receives.push_back({n.rank, ids.data() + n.first_wanted, at(n.wanted) * sizeof(std::int64_t)});
  }
  move_between_ranks(sends, receives, ranks);
  for (const std::int64_t id : ids) wanted_.push_back(static_cast<std::int32_t>(id - first()));
}

int Nodes::owners() const {
  int owners = 0;
  for (std::size_t p = 0; p + 1 < starts_.size(); ++p) owners += starts_[p] < starts_[p + 1] ? 1 : 0;
  return owners;
}

std::int32_t Nodes::local(std::int64_t global) const {
  if (global >= first() && global < first() + own()) return static_cast<std::int32_t>(global - first());
  return static_cast<std::int32_t>(own() + (std::lower_bound(ghosts_.begin(), ghosts_.end(), global) - ghosts_.begin()));
}

void Nodes::fetch_bytes(const void* own, void* ghosts, std::size_t item_bytes) const {
  HostVector<std::byte> packed(wanted_.size() * item_bytes);
  for (std::size_t i = 0; i < wanted_.size(); ++i)
    std::memcpy(packed.data() + i * item_bytes, static_cast<const std::byte*>(own) + at(wanted_[i]) * item_bytes,
                item_bytes);
  fetch_wanted(packed.data(), ghosts, item_bytes);
}

void Nodes::fetch_wanted(const void* of_wanted, void* ghosts, std::size_t item_bytes) const {
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  for (const Neighbour& n : neighbours_) {
    sends.push_back(
        {n.rank, static_cast<const std::byte*>(of_wanted) + at(n.first_wanted) * item_bytes, at(n.wanted) * item_bytes});
    receives.push_back(
        {n.rank, static_cast<std::byte*>(ghosts) + at(n.first_ghost) * item_bytes, at(n.ghosts) * item_bytes});
  }
  move_between_ranks(sends, receives, *ranks_);
}

void Nodes::add_home(HostVector<double>& values, std::int64_t each) const {
  HostVector<double> come(wanted_.size() * at(each));
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  for (const Neighbour& n : neighbours_) {
    sends.push_back({n.rank, values.data() + (own() + n.first_ghost) * each, at(n.ghosts * each) * sizeof(double)});
    receives.push_back({n.rank, come.data() + n.first_wanted * each, at(n.wanted * each) * sizeof(double)});
  }
  move_between_ranks(sends, receives, *ranks_);
  for (std::size_t i = 0; i < come.size(); ++i) {
    const auto node = std::int64_t{wanted_[i / at(each)]};
    values[at(node * each) + i % at(each)] += come[i];
  }
  values.resize(at(own() * each));
}

Lists Nodes::fetch(const Lists& of_wanted) const {
  std::vector<ListRun> out, in;
  for (const Neighbour& n : neighbours_)
    out.push_back({n.rank, n.first_wanted, n.wanted}), in.push_back({n.rank, n.first_ghost, n.ghosts});
  return exchange(of_wanted, out, in, *ranks_);
}

Lists Nodes::send_home(const Lists& of_ghosts) const {
  std::vector<ListRun> out, in;
  for (const Neighbour& n : neighbours_)
    out.push_back({n.rank, n.first_ghost, n.ghosts}), in.push_back({n.rank, n.first_wanted, n.wanted});
  return exchange(of_ghosts, out, in, *ranks_);
}

}  // namespace shardmat::multigrid
