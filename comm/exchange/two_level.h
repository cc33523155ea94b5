// The two ways in which hosts get once what their ranks need: two_level.cpp takes the first on the host and the second on
// GPUs.
//
// Threads: as exchange.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/exchange/exchange.h"

namespace shardmat {

/// The ranks of a host share memory: one message for each pair of hosts (two_level_host.cpp). REQUIRES: the host backend.
/// Collective; the same error on all ranks.
std::unique_ptr<Exchange> make_two_level_of_host(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map);
/// Entries that it holds at most on this rank.
std::int64_t held_by_two_level_of_host(const ColumnMap& map);

/// One rank of a host gets what its ranks need of a rank of another host, and sends it on (two_level_relays.cpp): by NCCL
/// between GPUs, by MPI on the host. Collective; the same error on all ranks.
std::unique_ptr<Exchange> make_two_level_by_relays(const ExchangeContext& context, std::shared_ptr<const ColumnMap> map);
/// Entries that it holds on this rank. Collective.
std::int64_t held_by_two_level_relays(Communicator& communicator, const ColumnMap& map);

/// What all ranks together send to other hosts.
struct BetweenHosts {
  Communicator::Sent sent, by_halo;
};
/// `mine`: what this rank sends in an exchange over the map. Collective.
BetweenHosts sum_between_hosts(const ExchangeContext& context, const ColumnMap& map, const Communicator::Sent& mine);
/// For the report: "… cross between hosts in …".
std::string text_of(const BetweenHosts& all);

}  // namespace shardmat
