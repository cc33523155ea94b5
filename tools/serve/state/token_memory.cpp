#include "tools/serve/state/token_memory.h"

#include <utility>

namespace shardmat::serve {

TokenMemory::Charge::Charge(TokenMemory& table, std::shared_ptr<const Rights> rights, Kind kind)
    : table_(table), rights_(std::move(rights)), tenant_(rights_->tenant()), kind_(kind) {}

TokenMemory::Charge::~Charge() { correct(0); }

bool TokenMemory::Charge::raise(std::uint64_t bytes) {
  if (bytes <= bytes_) return true;
  if (rights_->memory_bytes > 0) {
    const auto [vectors, requests] = table_.used(tenant_);
    if (vectors + requests - bytes_ + bytes > rights_->memory_bytes) return false;
  }
  correct(bytes);
  return true;
}

void TokenMemory::Charge::correct(std::uint64_t bytes) {
  if (bytes == bytes_) return;
  const auto place = table_.used_.try_emplace(tenant_, Used{}).first;
  place->second[static_cast<std::size_t>(kind_)] += bytes - std::exchange(bytes_, bytes);
  if (place->second == Used{}) table_.used_.erase(place);
}

TokenMemory::Used TokenMemory::used(const std::string& tenant) const {
  const auto found = used_.find(tenant);
  return found == used_.end() ? Used{} : found->second;
}

}  // namespace shardmat::serve
