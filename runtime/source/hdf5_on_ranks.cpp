#include "runtime/source/hdf5_on_ranks.h"

#include "comm/long_wait.h"
#include "partition/hdf5/describe.h"

namespace shardmat {

void describe_on_all_ranks(const std::optional<Hdf5Input>& input, Communicator& communicator) {
  if (communicator.size() == 1) return;  // opening the file asks the helper
  const bool asks = input && communicator.rank() == 0;
  const int needed = communicator.run_agreed([&] { return asks && needs_hdf5_description(*input) ? 1 : 0; });
  if (communicator.all_reduce(needed, Reduction::max) == 0) return;
  const LongWait wait(communicator);  // the helper may take longer than ranks wait for each other
  std::string text;
  communicator.run_agreed([&] {
    if (asks) text = hdf5_description_text(*input);
  });
  text = communicator.broadcast(std::move(text));
  communicator.run_agreed([&] {
    if (input) remember_hdf5_description(*input, std::move(text));
  });
}

}  // namespace shardmat
