#include "tools/cli/run_owners.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <span>
#include <vector>

#include "comm/placement.h"
#include "comm/shared_gpu/rank_group.h"
#include "kernels/base/print_error.h"
#include "tools/cli/checks.h"
#include "tools/cli/run_ranks.h"

namespace shardmat::tools {

void add_sharing_options(const CommandLine& app, RankSharing& sharing) {
  app.in(Topic::machine)
      .add_option("--feeders", sharing.feeders,
                  "what to do with more ranks than GPUs. auto: one rank for each GPU works, and the other ranks wait. off: "
                  "refuse to run")
      ->check(one_of({"auto", "off"}))
      ->capture_default_str();
  app.in(Topic::machine)
      .add_option("--owners", sharing.owners,
                  "on the host: number of ranks of each host that work. The other ranks wait. 0: all ranks work")
      ->check(whole_number(0, 1 << 20))
      ->capture_default_str();
}

int run_owners(const CommandLine& command, double timeout_seconds, const RankSharing& sharing, const std::string& backend,
               const std::function<int(Communicator&)>& work) {
  return run_ranks(command, timeout_seconds, [&](Communicator& all) {
    const std::vector<int> owners =
        owners_of_ranks(all, parse_backend_choice(backend), {sharing.feeders != "off", sharing.owners});
    std::ptrdiff_t working = 0;
    for (std::size_t rank = 0; rank < owners.size(); ++rank) working += owners[rank] == static_cast<int>(rank) ? 1 : 0;
    if (working == std::ssize(owners)) return work(all);
    if (all.rank() == 0) print_error("{} of {} ranks work; the others wait\n", working, owners.size());
    RankGroup group(all, owners);
    const std::string exit_code = group.call(
        "the command", [] { return std::vector<Operand>(); },
        [&](std::span<const GroupOperand>) { return std::to_string(work(group.owners())); });
    return std::stoi(exit_code);
  });
}

}  // namespace shardmat::tools
