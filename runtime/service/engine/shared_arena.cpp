#include "runtime/service/engine/shared_arena.h"

#include <unistd.h>

#include <optional>
#include <span>
#include <utility>

#include "comm/open_of_process.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"

namespace shardmat::service {

Arena make_shared_arena(Communicator& communicator, std::uint64_t bytes) {
  struct Maker {
    std::int32_t process = 0, descriptor = -1;
  };
  std::optional<Arena> arena;
  communicator.run_agreed([&] {
    if (communicator.local_size() != communicator.size())
      throw Error(ErrorKind::usage, "the ranks share memory, so all of them must be on one host");
    if (communicator.rank() != 0) return;
    require_host_memory(static_cast<std::int64_t>(bytes), "the vectors that all ranks share");
    arena.emplace(Arena::create(bytes));
  });
  Maker maker = arena ? Maker{getpid(), arena->descriptor()} : Maker{};
  communicator.broadcast(std::span<Maker>(&maker, 1));
  communicator.run_agreed([&] {
    if (!arena) arena.emplace(Arena::map(open_of_process(maker.process, maker.descriptor)));
  });
  return std::move(*arena);
}

}  // namespace shardmat::service
