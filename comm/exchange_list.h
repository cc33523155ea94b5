// The exchanges that exist; exchange.cpp lists them. Each lives in its own file.
#pragma once

#include <memory>
#include <string>

#include "comm/exchange.h"
#include "comm/gathered_layout.h"
#include "comm/halo.h"

namespace shardmat {

std::unique_ptr<Exchange> make_no_exchange(const ExchangeContext& context, GatheredLayout layout);
std::unique_ptr<Exchange> make_host_all_gather(const ExchangeContext& context, GatheredLayout layout);
std::unique_ptr<Exchange> make_nccl_all_gather(const ExchangeContext& context, GatheredLayout layout);
std::unique_ptr<Exchange> make_halo_exchange(const ExchangeContext& context, Halo halo);

/// An exchange, or why there cannot be one here.
struct PeerAttempt {
  std::unique_ptr<Exchange> exchange;
  std::string why_not;
};
PeerAttempt try_peer_exchange(const ExchangeContext& context, Halo halo);

}  // namespace shardmat
