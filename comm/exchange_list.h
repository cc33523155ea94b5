// The exchanges that exist; exchange.cpp lists them. Each lives in its own file.
#pragma once

#include <cstdint>
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
/// Memory of the device that so many sent entries take apart from x.
constexpr std::int64_t peer_list_bytes(std::int64_t sent) {
  return sent * static_cast<std::int64_t>(sizeof(std::int32_t) + sizeof(std::uint8_t));  // place and receiver
}

}  // namespace shardmat
