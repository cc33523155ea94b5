#include "tools/serve/state/token_memory.h"

#include <utility>

namespace shardmat::serve {

TokenMemory::Charge::Charge(TokenMemory& table, std::shared_ptr<const Rights> rights, Kind kind)
    : table_(table),
      rights_(std::move(rights)),
      account_(table.accounts_.try_emplace(rights_->tenant()).first),
      kind_(kind) {
  ++account_->second.charges;
}

TokenMemory::Charge::Charge(Charge&& other) noexcept
    : table_(other.table_), rights_(other.rights_), account_(other.account_), kind_(other.kind_) {
  bytes_ = std::exchange(other.bytes_, 0);
  ++account_->second.charges;
}

TokenMemory::Charge::~Charge() {
  correct(0);
  if (--account_->second.charges == 0) table_.accounts_.erase(account_);
}

bool TokenMemory::Charge::raise(std::uint64_t bytes) {
  if (bytes <= bytes_) return true;
  const auto& [vectors, requests] = account_->second.used;
  if (rights_->memory_bytes > 0 && vectors + requests - bytes_ + bytes > rights_->memory_bytes) return false;
  correct(bytes);
  return true;
}

void TokenMemory::Charge::correct(std::uint64_t bytes) {
  account_->second.used[static_cast<std::size_t>(kind_)] += bytes - std::exchange(bytes_, bytes);
}

TokenMemory::Used TokenMemory::used(const std::string& tenant) const {
  const auto found = accounts_.find(tenant);
  return found == accounts_.end() ? Used{} : found->second.used;
}

}  // namespace shardmat::serve
