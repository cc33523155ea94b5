// The exchanges that exist; exchange.cpp lists them. Each lives in its own file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "comm/exchange.h"

namespace shardmat {

std::unique_ptr<Exchange> make_no_exchange(const ExchangeContext& context, GatheredLayout layout, const std::string& why);
std::unique_ptr<Exchange> make_host_all_gather(const ExchangeContext& context, GatheredLayout layout,
                                               const std::string& why);
std::unique_ptr<Exchange> make_nccl_all_gather(const ExchangeContext& context, GatheredLayout layout,
                                               const std::string& why);

/// Bytes of the gathered vector.
std::size_t gathered_bytes(const GatheredLayout& layout, ValueType type);
/// Bytes of one part's slot in it.
std::size_t slot_bytes(const GatheredLayout& layout, ValueType type);

}  // namespace shardmat
