#include "runtime/service/engine/other_hosts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/parallel.h"
#include "runtime/service/engine/shared_arena.h"

namespace shardmat::service {
namespace {

constexpr int kEntriesTag = 71, kColumnTag = 72, kToldTag = 73;
/// Maps that are remembered: more are forgotten together, on all ranks alike.
constexpr std::size_t kMostKnown = 256;
constexpr std::int64_t kRowsAThread = 1 << 14;
/// Columns of a product are packed into messages of at most so many bytes; a longer column is a message of its own.
constexpr std::size_t kMessageBytes = std::size_t{64} << 20;

/// Between entries `ids` of a vector and a buffer in which they follow each other.
void copy_entries(std::byte* vector, std::span<const std::int64_t> ids, std::byte* buffer, ValueType type, bool to_buffer) {
  dispatch(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T *const entries = reinterpret_cast<T*>(vector), *const packed = reinterpret_cast<T*>(buffer);
    parallel_ranges(std::ssize(ids), kRowsAThread, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        T& entry = entries[ids[static_cast<std::size_t>(i)]];
        if (to_buffer) packed[i] = entry;
        else entry = packed[i];
      }
    });
  });
}

}  // namespace

OtherHosts::OtherHosts(Communicator& ranks, const std::string& home) : ranks_(&ranks) {
  const std::vector<std::string> names = ranks.all_gather(ranks.host());
  std::vector<int> at_home;
  std::vector<std::string> others;  // in the order of hosts_
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::string& name = names[static_cast<std::size_t>(rank)];
    if (name == home) {
      at_home.push_back(rank);
      continue;
    }
    const auto at = static_cast<std::size_t>(std::find(others.begin(), others.end(), name) - others.begin());
    if (at == others.size()) others.push_back(name), hosts_.emplace_back();
    hosts_[at].ranks.push_back(rank);
    if (rank == ranks.rank()) host_ = at;
  }
  for (std::size_t host = 0; host < hosts_.size(); ++host) hosts_[host].partner = at_home[host % at_home.size()];
}

std::optional<Arena> OtherHosts::make_memory(std::uint64_t bytes) {
  if (!exist()) return std::nullopt;
  return share_arena(*ranks_, host_ ? hosts_[*host_].ranks.front() : -1, bytes);
}

bool OtherHosts::takes_part(const Host& host) const {
  return host.partner == ranks_->rank() || (host_ && &hosts_[*host_] == &host);
}

void OtherHosts::fetch(std::span<std::byte* const> columns, const RowMap& map, ValueType type) {
  if (columns.empty()) return;
  remember(map);
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (!takes_part(hosts_[host])) continue;
    const Entries& entries = entries_of(host, map);
    move(hosts_[host], entries, columns, type, true);
    tell_others(hosts_[host]);
  }
}

void OtherHosts::deliver(std::span<std::byte* const> columns, const RowMap& map, ValueType type) {
  if (columns.empty()) return;
  remember(map);
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (!takes_part(hosts_[host])) continue;
    const Entries& entries = entries_of(host, map);
    hear_others(hosts_[host]);
    move(hosts_[host], entries, columns, type, false);
  }
}

void OtherHosts::fetch(std::byte* data, std::span<const Range> of_ranks) {
  for (const Host& host : hosts_) {
    if (!takes_part(host)) continue;
    const auto range_of = [&](std::size_t i) { return of_ranks[static_cast<std::size_t>(host.ranks[i])]; };
    for (std::size_t i = 0; i < host.ranks.size();) {
      Range range = range_of(i++);
      while (i < host.ranks.size() && range_of(i).first == range.end) range.end = range_of(i++).end;
      transfer(data + range.first, range.end - range.first, host.partner, host.ranks.front());
    }
    tell_others(host);
  }
}

void OtherHosts::remember(const RowMap& map) {
  if (maps_.size() == kMostKnown && !maps_.contains(map.number())) maps_.clear(), known_.clear();
  maps_.insert(map.number());
}

const OtherHosts::Entries& OtherHosts::entries_of(std::size_t host, const RowMap& map) {
  const auto key = std::pair(map.number(), host);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  return known_[key] = gather_entries(hosts_[host], map);
}

/// The first rank of the host gathers, and tells the partner.
OtherHosts::Entries OtherHosts::gather_entries(const Host& host, const RowMap& map) {
  const int me = ranks_->rank(), first = host.ranks.front();
  constexpr auto kEntry = sizeof(std::int64_t);
  Entries entries;
  const auto send_ids = [&](const HostVector<std::int64_t>& ids, int to) {
    ranks_->send(ids.data(), ids.size() * kEntry, to, kEntriesTag);
  };
  if (me == first) {
    entries.ids = map.ids();
    for (std::size_t i = 1; i < host.ranks.size(); ++i) {
      std::int64_t count = 0;
      ranks_->receive(&count, kEntry, host.ranks[i], kEntriesTag);
      const std::size_t before = entries.ids.size();
      entries.ids.resize(before + static_cast<std::size_t>(count));
      ranks_->receive(entries.ids.data() + before, static_cast<std::size_t>(count) * kEntry, host.ranks[i], kEntriesTag);
    }
    entries.count = std::ssize(entries.ids);
    entries.first = entries.ids.empty() ? 0 : entries.ids.front();
    bool is_range = true;
    for (std::size_t i = 0; i < entries.ids.size() && is_range; ++i)
      is_range = entries.ids[i] == entries.first + static_cast<std::int64_t>(i);
    if (is_range) entries.ids = {};
    const std::int64_t shape[3]{entries.first, entries.count, is_range};
    ranks_->send(shape, sizeof shape, host.partner, kEntriesTag);
    send_ids(entries.ids, host.partner);
  } else if (me == host.partner) {
    std::int64_t shape[3]{};
    ranks_->receive(shape, sizeof shape, first, kEntriesTag);
    entries.first = shape[0], entries.count = shape[1];
    if (shape[2] == 0) entries.ids.resize(static_cast<std::size_t>(entries.count));
    ranks_->receive(entries.ids.data(), entries.ids.size() * kEntry, first, kEntriesTag);
  } else {
    const std::int64_t count = std::ssize(map.ids());
    ranks_->send(&count, kEntry, first, kEntriesTag);
    send_ids(map.ids(), first);
  }
  return entries;
}

void OtherHosts::transfer(std::byte* data, std::size_t bytes, int from, int to) {
  if (bytes == 0) return;
  if (ranks_->rank() == from) ranks_->send(data, bytes, to, kColumnTag);
  else if (ranks_->rank() == to) ranks_->receive(data, bytes, from, kColumnTag);
}

void OtherHosts::move(const Host& host, const Entries& entries, std::span<std::byte* const> columns, ValueType type,
                      bool to_host) {
  const int first = host.ranks.front(), me = ranks_->rank();
  const int from = to_host ? host.partner : first, to = to_host ? first : host.partner;
  const std::size_t bytes = static_cast<std::size_t>(entries.count) * size_of(type),
                    begin = static_cast<std::size_t>(entries.first) * size_of(type);
  if ((me != from && me != to) || bytes == 0) return;
  const std::size_t at_a_time = std::max<std::size_t>(1, kMessageBytes / bytes);
  for (std::size_t i = 0; i < columns.size(); i += at_a_time) {
    const auto some = columns.subspan(i, std::min(at_a_time, columns.size() - i));
    if (some.size() == 1 && entries.ids.empty()) {
      transfer(some.front() + begin, bytes, from, to);
      continue;
    }
    if (staging_.size() < some.size() * bytes) staging_.resize(some.size() * bytes);
    const auto copy = [&](bool to_buffer) {
      for (std::size_t j = 0; j < some.size(); ++j) {
        std::byte* const packed = staging_.data() + j * bytes;
        if (!entries.ids.empty()) copy_entries(some[j], entries.ids, packed, type, to_buffer);
        else if (to_buffer) std::memcpy(packed, some[j] + begin, bytes);
        else std::memcpy(some[j] + begin, packed, bytes);
      }
    };
    if (me == from) copy(true);
    transfer(staging_.data(), some.size() * bytes, from, to);
    if (me == to) copy(false);
  }
}

void OtherHosts::tell_others(const Host& host) {
  const std::byte all_is_there{1};
  std::byte heard{};
  if (ranks_->rank() == host.ranks.front())
    for (std::size_t i = 1; i < host.ranks.size(); ++i) ranks_->send(&all_is_there, 1, host.ranks[i], kToldTag);
  else if (ranks_->rank() != host.partner) ranks_->receive(&heard, 1, host.ranks.front(), kToldTag);
}

void OtherHosts::hear_others(const Host& host) {
  const std::byte all_is_there{1};
  std::byte heard{};
  if (ranks_->rank() == host.ranks.front())
    for (std::size_t i = 1; i < host.ranks.size(); ++i) ranks_->receive(&heard, 1, host.ranks[i], kToldTag);
  else if (ranks_->rank() != host.partner) ranks_->send(&all_is_there, 1, host.ranks.front(), kToldTag);
}

}  // namespace shardmat::service
