#include "tools/serve/state/client_memories.h"

#include <fmt/format.h>
#include <unistd.h>

#include "kernels/base/error.h"
#include "tools/serve/words/problem.h"

namespace shardmat::serve {

ClientMemory::~ClientMemory() { list_.remove(*this); }

std::variant<Problem, std::shared_ptr<ClientMemory>> ClientMemories::make(std::uint64_t bytes) {
  if (bytes > most_bytes_)
    return make_problem(
        413, "memory_too_large",
        fmt::format("{} bytes are more than the {} that all clients together may share, as many as the service's arena has",
                    bytes, most_bytes_));
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t pages = (bytes + page - 1) / page * page;
  if (pages > most_bytes_ - used_)
    return make_problem(507, "memory_full",
                        fmt::format("clients share {} of {} bytes; {} more do not fit now", used_, most_bytes_, pages));
  try {
    auto memory = std::make_shared<ClientMemory>(*this, ++last_, service::Arena::create(pages, "shardmat-client"));
    memories_[memory->number()] = memory;
    used_ += pages;
    return memory;
  } catch (const Error& error) {
    return make_problem(507, "no_memory", fmt::format("no memory for this client: {}", error.what()));
  }
}

std::vector<std::shared_ptr<ClientMemory>> ClientMemories::all() const {
  std::vector<std::shared_ptr<ClientMemory>> living;
  for (const auto& [number, memory] : memories_)
    if (auto one = memory.lock()) living.push_back(std::move(one));
  return living;
}

void ClientMemories::remove(const ClientMemory& memory) {
  memories_.erase(memory.number());
  used_ -= memory.bytes();
  gone_(memory.number());
}

}  // namespace shardmat::serve
