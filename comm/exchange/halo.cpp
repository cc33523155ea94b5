#include "comm/exchange/halo.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"
#include "kernels/base/narrow.h"
#include "kernels/base/parallel.h"
#include "kernels/base/text.h"

namespace shardmat {
namespace {

constexpr int kRequestTag = 21;
constexpr std::size_t kFewColumns = std::size_t{1} << 20;

/// The peers among counts[p] = entries of rank p, in ascending order from `begin` on, after the last the others.
std::vector<Halo::Peer> peers(const std::vector<std::int64_t>& counts, int begin) {
  const auto ranks = static_cast<int>(counts.size());
  std::vector<Halo::Peer> all;
  std::int64_t first = 0;
  for (int i = 0; i < ranks; ++i) {
    const int p = (begin + i) % ranks;
    const std::int64_t count = counts[static_cast<std::size_t>(p)];
    if (count > 0) all.push_back({p, first, count});
    first += count;
  }
  return all;
}

void sort_distinct(std::vector<std::int64_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

/// `columns` of other ranks, ascending and distinct.
template <class Columns>
std::vector<std::int64_t> find_needed(const Halo& halo, const Columns& columns) {
  std::vector<std::int64_t> needed;
  std::mutex mutex;
  parallel_ranges(std::ssize(columns), 1 << 16, [&](std::int64_t first, std::int64_t last) {
    std::vector<std::int64_t> mine;
    std::size_t limit = kFewColumns;  // then what comes again is dropped, so that memory follows the distinct ones
    for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k) {
      if (columns[k] >= halo.begin && columns[k] < halo.begin + halo.own) continue;
      mine.push_back(columns[k]);
      if (mine.size() < limit) continue;
      sort_distinct(mine);
      limit = std::max(kFewColumns, 2 * mine.size());
    }
    sort_distinct(mine);
    require_host_memory(16 * std::ssize(mine), "the columns that other ranks own");
    const std::lock_guard lock(mutex);
    needed.insert(needed.end(), mine.begin(), mine.end());
  });
  sort_distinct(needed);
  if (halo.first_received() + std::ssize(needed) > std::numeric_limits<std::int32_t>::max())
    throw Error(ErrorKind::resources,
                fmt::format("this rank's rows need {} entries of x, more than 2^31 - 1; use more ranks",
                            human_count(halo.own + std::ssize(needed))));
  return needed;
}

}  // namespace

Halo find_halo(std::int64_t begin, std::int64_t own, const ColumnView& columns) {
  Halo halo;
  halo.begin = begin, halo.own = own;
  halo.entries = columns.visit([&](const auto& all) { return find_needed(halo, all); });
  halo.received = std::ssize(halo.entries);
  return halo;
}

Halo make_halo(Communicator& communicator, const XParts& parts, const ColumnView& columns) {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const std::int64_t begin = parts.starts[rank], own = parts.starts[rank + 1] - begin;
  const bool owns_all = own == parts.starts.back();
  Halo halo = communicator.run_agreed([&] {
    Halo found = find_halo(begin, own, owns_all ? ColumnView() : columns);
    found.own_places.resize(parts.order.size());
    for (std::size_t i = 0; i < parts.order.size(); ++i)
      found.own_places[static_cast<std::size_t>(parts.order[i])] = static_cast<std::int32_t>(i);
    return found;
  });
  halo.owns_all = owns_all;

  std::vector<std::int64_t> wanted(static_cast<std::size_t>(communicator.size()));
  auto end = halo.entries.begin();
  for (std::size_t p = 0; p < wanted.size(); ++p) {
    const auto first = end;
    end = std::lower_bound(first, halo.entries.end(), parts.starts[p + 1]);
    wanted[p] = end - first;
  }
  halo.from = peers(wanted, 0);  // as the entries
  halo.to = peers(communicator.all_to_all(wanted), communicator.rank() + 1);

  // Columns are asked for as distances from the first of their part.
  std::vector<std::int32_t> asked;
  communicator.run_agreed([&] {
    asked.resize(halo.entries.size());
    for (const Halo::Peer& peer : halo.from)
      for (auto i = static_cast<std::size_t>(peer.first); i < static_cast<std::size_t>(peer.first + peer.count); ++i)
        asked[i] = narrow<std::int32_t>(halo.entries[i] - parts.starts[static_cast<std::size_t>(peer.rank)],
                                        "a place in a part of x");
    halo.sent.resize(halo.to.empty() ? 0 : static_cast<std::size_t>(halo.to.back().first + halo.to.back().count));
  });
  const auto bytes = [](const Halo::Peer& peer) { return static_cast<std::size_t>(peer.count) * sizeof(std::int32_t); };
  std::vector<Communicator::Transfer::Outgoing> requests;
  std::vector<Communicator::Transfer::Incoming> requested;
  for (const Halo::Peer& peer : halo.from) requests.push_back({peer.rank, asked.data() + peer.first, bytes(peer)});
  for (const Halo::Peer& peer : halo.to) requested.push_back({peer.rank, halo.sent.data() + peer.first, bytes(peer)});
  Communicator::Transfer transfer = communicator.start(requests, requested, kRequestTag);
  communicator.finish(transfer);
  if (!halo.own_places.empty())
    for (std::int32_t& place : halo.sent) place = halo.own_places[static_cast<std::size_t>(place)];
  return halo;
}

namespace {

template <class Column>
void renumber_columns(const Halo& halo, std::span<Column> columns) {
  const auto position = [&](std::int64_t column) {
    if (column >= halo.begin && column < halo.begin + halo.own)
      return halo.own_places.empty() ? column - halo.begin
                                     : std::int64_t{halo.own_places[static_cast<std::size_t>(column - halo.begin)]};
    const auto found = std::lower_bound(halo.entries.begin(), halo.entries.end(), column);
    if (found == halo.entries.end() || *found != column)
      throw Error(ErrorKind::internal, fmt::format("column {} is not among those that the halo was made for", column));
    return halo.first_received() + (found - halo.entries.begin());
  };
  parallel_ranges(static_cast<std::int64_t>(columns.size()), 1 << 16, [&](std::int64_t first, std::int64_t last) {
    for (auto k = static_cast<std::size_t>(first); k < static_cast<std::size_t>(last); ++k)
      columns[k] = static_cast<Column>(position(columns[k]));
  });
}

}  // namespace

void Halo::renumber(std::span<std::int64_t> columns) const { renumber_columns(*this, columns); }
void Halo::renumber(std::span<std::int32_t> columns) const { renumber_columns(*this, columns); }

void Halo::forget_columns() {
  entries = std::vector<std::int64_t>();  // = {} would keep the memory
  own_places = std::vector<std::int32_t>();
}

Communicator::Sent to_other_hosts(const Communicator& communicator, const std::vector<Halo::Peer>& to,
                                  std::size_t entry_bytes) {
  Communicator::Sent sent;
  for (const Halo::Peer& peer : to) {
    if (communicator.host_of(peer.rank) == communicator.host_of(communicator.rank())) continue;
    ++sent.messages;
    sent.bytes += peer.count * static_cast<std::int64_t>(entry_bytes);
  }
  return sent;
}

SentPlaces find_sent_places(Communicator& communicator, const Halo& halo) {
  SentPlaces there;
  std::vector<std::int64_t> begins(static_cast<std::size_t>(communicator.size()));  // of what each rank writes here
  for (const Halo::Peer& peer : halo.from) begins[static_cast<std::size_t>(peer.rank)] = halo.first_received() + peer.first;
  there.shifts = communicator.all_to_all(begins);
  communicator.run_agreed([&] {
    there.receivers.resize(halo.sent.size());
    for (const Halo::Peer& peer : halo.to) {
      there.shifts[static_cast<std::size_t>(peer.rank)] -= peer.first;
      std::fill_n(there.receivers.begin() + peer.first, peer.count, static_cast<std::uint8_t>(peer.rank));
    }
  });
  return there;
}

}  // namespace shardmat
