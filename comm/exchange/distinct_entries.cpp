#include "comm/exchange/distinct_entries.h"

#include <algorithm>
#include <map>

#include "kernels/base/narrow.h"

namespace shardmat {
namespace {

constexpr int kTag = 28;

/// Fills `to` and `sent`. Returns the number of each sent entry of the halo among the distinct ones of its receiver's host.
std::vector<std::int32_t> unite(const Communicator& communicator, const Halo& halo, DistinctEntries& found) {
  const int hosts = communicator.hosts(), mine = communicator.host_of(communicator.rank());
  std::map<int, std::vector<Halo::Peer>> peers;  // by how far their host is behind this one; this host last
  for (const Halo::Peer& peer : halo.to) peers[(communicator.host_of(peer.rank) - mine - 1 + hosts) % hosts].push_back(peer);
  std::vector<std::int32_t> numbers(halo.sent.size());
  for (const auto& [behind, receivers] : peers) {
    std::vector<std::int32_t> all;
    for (const Halo::Peer& peer : receivers)
      all.insert(all.end(), halo.sent.begin() + peer.first, halo.sent.begin() + peer.first + peer.count);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    for (const Halo::Peer& peer : receivers)
      for (auto i = static_cast<std::size_t>(peer.first); i < static_cast<std::size_t>(peer.first + peer.count); ++i)
        numbers[i] = static_cast<std::int32_t>(std::lower_bound(all.begin(), all.end(), halo.sent[i]) - all.begin());
    found.to.push_back({communicator.host_of(receivers.front().rank), std::ssize(found.sent), std::ssize(all)});
    found.sent.insert(found.sent.end(), all.begin(), all.end());
  }
  return numbers;
}

}  // namespace

DistinctEntries find_distinct_entries(Communicator& communicator, const Halo& halo) {
  DistinctEntries found;
  const std::vector<std::int32_t> numbers = communicator.run_agreed([&] {
    found.numbers.resize(static_cast<std::size_t>(halo.received));
    return unite(communicator, halo, found);
  });
  std::vector<std::int64_t> given(static_cast<std::size_t>(communicator.size()));
  for (int rank = 0; rank < communicator.size(); ++rank)
    for (const DistinctEntries::Host& host : found.to)
      if (host.host == communicator.host_of(rank)) given[static_cast<std::size_t>(rank)] = host.count;
  found.got = communicator.all_to_all(given);

  const auto bytes = [](const Halo::Peer& peer) { return static_cast<std::size_t>(peer.count) * sizeof(std::int32_t); };
  std::vector<Communicator::Transfer::Outgoing> sends;
  std::vector<Communicator::Transfer::Incoming> receives;
  for (const Halo::Peer& peer : halo.to) sends.push_back({peer.rank, numbers.data() + peer.first, bytes(peer)});
  for (const Halo::Peer& peer : halo.from) receives.push_back({peer.rank, found.numbers.data() + peer.first, bytes(peer)});
  Communicator::Transfer transfer = communicator.start(sends, receives, kTag);
  communicator.finish(transfer);
  return found;
}

std::vector<std::vector<int>> ranks_of_hosts(const Communicator& communicator) {
  std::vector<std::vector<int>> ranks(static_cast<std::size_t>(communicator.hosts()));
  for (int rank = 0; rank < communicator.size(); ++rank)
    ranks[static_cast<std::size_t>(communicator.host_of(rank))].push_back(rank);
  return ranks;
}

}  // namespace shardmat
