#include "comm/halo.h"

#include <algorithm>

#include "kernels/base/narrow.h"

namespace shardmat {
namespace {

constexpr int kTag = 21;

/// The peers among counts[p] = entries of rank p.
std::vector<Halo::Peer> peers(const std::vector<std::int64_t>& counts) {
  std::vector<Halo::Peer> all;
  std::int64_t first = 0;
  for (std::size_t p = 0; p < counts.size(); first += counts[p++])
    if (counts[p] > 0) all.push_back({static_cast<int>(p), first, counts[p]});
  return all;
}

}  // namespace

Halo make_halo(Communicator& communicator, std::span<const std::int64_t> starts, std::vector<std::int64_t> needed,
               std::span<const std::int32_t> places) {
  Halo halo;
  std::vector<std::int64_t> wanted(static_cast<std::size_t>(communicator.size()));
  auto end = needed.begin();
  for (std::size_t p = 0; p < wanted.size(); ++p) {
    const auto begin = end;
    end = std::lower_bound(begin, needed.end(), starts[p + 1]);
    wanted[p] = end - begin;
  }
  halo.from = peers(wanted);
  halo.to = peers(communicator.all_to_all(wanted));

  // Columns are asked for as distances from the first of their part.
  std::vector<std::int32_t> asked(needed.size());
  std::vector<Communicator::Transfer::Outgoing> sends;
  std::vector<Communicator::Transfer::Incoming> receives;
  communicator.together([&] {
    for (const Halo::Peer& peer : halo.from) {
      for (auto i = static_cast<std::size_t>(peer.first); i < static_cast<std::size_t>(peer.first + peer.count); ++i)
        asked[i] = narrow<std::int32_t>(needed[i] - starts[static_cast<std::size_t>(peer.rank)], "a place in a part of x");
      sends.push_back({peer.rank, asked.data() + peer.first, static_cast<std::size_t>(peer.count) * sizeof(std::int32_t)});
    }
    halo.sent.resize(halo.to.empty() ? 0 : static_cast<std::size_t>(halo.to.back().first + halo.to.back().count));
    for (const Halo::Peer& peer : halo.to)
      receives.push_back(
          {peer.rank, halo.sent.data() + peer.first, static_cast<std::size_t>(peer.count) * sizeof(std::int32_t)});
  });
  Communicator::Transfer transfer = communicator.start(sends, receives, kTag);
  communicator.finish(transfer);
  if (!places.empty())
    for (std::int32_t& place : halo.sent) place = places[static_cast<std::size_t>(place)];
  halo.entries = std::move(needed);
  return halo;
}

}  // namespace shardmat
