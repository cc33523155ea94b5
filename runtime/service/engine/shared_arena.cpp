#include "runtime/service/engine/shared_arena.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "comm/open_of_process.h"
#include "kernels/base/error.h"
#include "kernels/base/memory_limits.h"

namespace shardmat::service {

std::optional<Arena> share_arena(Communicator& communicator, int maker, std::uint64_t bytes) {
  struct Maker {
    std::int32_t process = 0, descriptor = -1;
  };
  std::optional<Arena> arena;
  communicator.run_agreed([&] {
    if (maker == communicator.rank()) arena.emplace(Arena::create(bytes));
  });
  const std::vector<Maker> makers = communicator.all_gather(arena ? Maker{getpid(), arena->descriptor()} : Maker());
  communicator.run_agreed([&] {
    if (maker < 0 || arena) return;
    const Maker& of = makers[static_cast<std::size_t>(maker)];
    arena.emplace(Arena::map(open_of_process(of.process, of.descriptor)));
  });
  if (arena) arena->close_descriptor();  // all have opened it
  return arena;
}

Arena make_shared_arena(Communicator& communicator, std::uint64_t bytes) {
  communicator.run_agreed([&] {
    if (communicator.local_size() != communicator.size())
      throw Error(ErrorKind::usage, "the ranks share memory, so all of them must be on one host");
    if (communicator.rank() == 0) require_host_memory(static_cast<std::int64_t>(bytes), "the vectors that all ranks share");
  });
  return std::move(*share_arena(communicator, 0, bytes));
}

}  // namespace shardmat::service
