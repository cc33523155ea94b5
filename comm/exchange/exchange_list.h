// The exchanges that exist; exchange.cpp lists their entries. Each lives in its own file.
//
// Threads: any thread; the entries never change.
#pragma once

#include "comm/exchange/exchange.h"

namespace shardmat {

extern const ExchangeEntry kNoExchange;         // no_exchange.cpp
extern const ExchangeEntry kAllGatherExchange;  // all_gather.cpp
extern const ExchangeEntry kHaloExchange;       // halo_exchange.cpp
extern const ExchangeEntry kPeerExchange;       // peer_exchange.cpp
extern const ExchangeEntry kTwoLevelExchange;   // two_level.cpp

}  // namespace shardmat
