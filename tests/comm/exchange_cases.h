// What every exchange must do, on either backend.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/exchange/exchange.h"

namespace shardmat {

/// Starts of `parts` parts that grow with the rank; every third part is empty.
std::vector<std::int64_t> uneven_starts(int parts, std::int64_t unit);

/// Makes the exchange that is to be checked.
using MakeExchange = std::function<MappedExchange(const ExchangeContext&, const XParts&, const ColumnView& columns)>;
/// An exchange: f32 and f64, several parts, orders and needs: all entries arrive, padding stays zero.
void check_exchange(const ExchangeContext& context, const std::string& name, const MakeExchange& make);
/// Every name in the list and "auto".
void check_exchanges(const ExchangeContext& context);
/// Exchanges of other widths and types over the map of the first, used in turn.
void check_several_on_one_map(const ExchangeContext& context);
/// Two exchanges under way at a time, many times, while other ranks are late. On the host.
void check_two_in_turn(const ExchangeContext& context, const std::string& name);
/// Called once, then recorded in a graph that is launched with changing x; all of it several times, with new exchanges.
void check_replay(const ExchangeContext& context);

/// Many of them, one behind the other and two exchanges in turn, as fast as they can be given to the device.
void check_many_without_wait(const ExchangeContext& context);

/// Sums of 1, 2 and 5 values, outside of graphs and in one.
void check_sums(const ExchangeContext& context);

}  // namespace shardmat
